-- Few messages are looked for by what is special about them: that they were purged, change the notes of a branch, or have a
-- line that was cut. One index holds them all, since each takes a page at least, and so did a table.
ALTER TABLE messages ADD COLUMN broken_line INTEGER;    -- 1: has a line that was cut between two passages; a word may stand in
                                                        -- neither, so that the index does not tell where it is not
UPDATE messages SET broken_line = 1 WHERE id IN (SELECT message_id FROM broken_lines);
DROP TABLE broken_lines;
DROP INDEX messages_purged;
CREATE INDEX messages_marked ON messages (parent_id, timestamp)
 WHERE kind = 4 OR tool_name = 'lcm_note' OR broken_line = 1;
