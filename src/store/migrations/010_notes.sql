-- What changes the notes of a branch: few messages, which are looked for at every compaction.
CREATE INDEX messages_noting ON messages (id) WHERE tool_name = 'lcm_note';
