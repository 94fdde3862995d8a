CREATE TABLE counts (
  -- Counts that would otherwise need a whole session to be read. All of it follows from the other tables. A session without a row is
  -- counted when needed, and gets its row at the next checkpoint.
  conversation_id INTEGER PRIMARY KEY,   -- -1: the whole project, of which only `messages` is counted
  messages        INTEGER NOT NULL,      -- that its entries show, those kept from the model included
  visible         INTEGER NOT NULL,      -- those of kind 0
  from_time       INTEGER,               -- ms, of the first of these
  to_time         INTEGER,               -- ms, of the last
  first_request   INTEGER,               -- the user's first message
  lowest          INTEGER,               -- the first row of `messages` that an entry refers to
  highest         INTEGER                -- the last
) STRICT;

INSERT INTO counts SELECT -1, count(*), 0, NULL, NULL, NULL, NULL, NULL FROM messages WHERE kind IN (0, 1);

CREATE TRIGGER conversations_counted AFTER INSERT ON conversations BEGIN
  INSERT OR REPLACE INTO counts (conversation_id, messages, visible) VALUES (NEW.id, 0, 0);
END;

-- Finds the messages of a branch that are not plain conversation, and the user's requests, without reading the others.
CREATE INDEX messages_unusual ON messages (id, kind, role) WHERE kind <> 0 OR role = 'user';

-- Purges and repairs change or remove rows; then everything is counted again.
CREATE TRIGGER entries_updated_reset_counts AFTER UPDATE OF id, conversation_id, kind, message_id ON entries BEGIN
  DELETE FROM counts;
END;
CREATE TRIGGER entries_deleted_reset_counts AFTER DELETE ON entries BEGIN
  DELETE FROM counts;
END;
CREATE TRIGGER messages_updated_reset_counts AFTER UPDATE OF id, kind, role, timestamp ON messages BEGIN
  DELETE FROM counts;
END;
CREATE TRIGGER messages_deleted_reset_counts AFTER DELETE ON messages BEGIN
  DELETE FROM counts;
END;
