CREATE TABLE broken_lines (
  -- Messages with a line that was cut between two passages: a word may stand in neither of them, so that the index
  -- does not tell where it is not.
  message_id INTEGER PRIMARY KEY
) STRICT;
-- Of those that are there already nobody has noted it.
INSERT INTO broken_lines (message_id) SELECT id FROM messages WHERE kind = 0 AND passages > 1;
