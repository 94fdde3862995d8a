-- An index of lineages alone changes a random page for each new message: half of what a large import wrote. It gives way to
-- two that new messages extend at their ends. SQLite has no statement that removes a UNIQUE: the constraint goes from the
-- table's text, and its index gets a name, so that it can be dropped. If the text is another, dropping it fails, and all stays.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'BLOB NOT NULL UNIQUE,  --', 'BLOB NOT NULL,         --')
 WHERE name = 'messages' AND instr(sql, 'BLOB NOT NULL UNIQUE,  --');
UPDATE sqlite_schema SET name = 'messages_by_hash', sql = 'CREATE INDEX messages_by_hash ON messages (lineage)'
 WHERE name = 'sqlite_autoindex_messages_1' AND changes() = 1;
PRAGMA writable_schema = RESET;
DROP INDEX messages_by_hash;

-- Lineages are unique: each follows from its parent's.
CREATE UNIQUE INDEX messages_by_parent ON messages (ifnull(parent_id, 0), lineage);

-- Finds a message by its lineage or short id, in one run of 16,384 rows after the other.
CREATE INDEX messages_by_lineage ON messages (id >> 14, substr(lineage, 1, 6));
