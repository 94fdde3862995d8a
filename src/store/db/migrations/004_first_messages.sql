-- Finds the first messages of sessions by their time: those that a fork of another agent's session may copy.
CREATE INDEX messages_first ON messages (timestamp) WHERE parent_id IS NULL;
