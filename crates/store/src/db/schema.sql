-- The whole store, format 1. Comments are inside the statements, so that `.schema` shows them.

CREATE TABLE _metadata (
  -- Facts about the database, such as `cwd`: the project it belongs to.
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE conversations (
  -- One row per Pi session.
  id             INTEGER PRIMARY KEY,
  session_id     TEXT NOT NULL UNIQUE, -- Pi's id
  file           TEXT,                 -- the session file, where there is one
  parent_session TEXT,                 -- file of the session this one was forked from
  started_at     INTEGER NOT NULL,     -- ms; when the store first saw it
  seen_at        INTEGER NOT NULL      -- ms; when it was last opened
) STRICT;

CREATE TABLE messages (
  -- One row per lineage: equal prefixes of two sessions are the same rows.
  id            INTEGER PRIMARY KEY,
  lineage       BLOB NOT NULL,         -- unique: sha256(parent's lineage, sha256(json)); short ids are its prefix
  parent_id     INTEGER REFERENCES messages (id), -- the message before; for kind 3 the message it is a rendition of
  height        INTEGER NOT NULL,      -- messages above it on its lineage
  kind          INTEGER NOT NULL,      -- 0 conversation, 1 private (kept from the model), 2 system, 3 edited rendition, 4 purged
  role          TEXT NOT NULL,
  tool_name     TEXT,                  -- of a tool result
  tokens        INTEGER NOT NULL,      -- estimate
  timestamp     INTEGER NOT NULL,      -- ms
  json          BLOB NOT NULL,         -- exactly what JSON.stringify gave, coded as `codec` says
  codec         INTEGER NOT NULL,      -- 0 plain, 1 zstd with our dictionary
  bytes         INTEGER NOT NULL,      -- length of the JSON before coding
  first_passage INTEGER,               -- rowid of its first passage in messages_fts, the others follow; NULL: not searched
  passages      INTEGER NOT NULL       -- how many
) STRICT;

-- A purged message leaves a row of kind 4: its `json` is a random number (`codec` -1), its lineage the hash of that and of the
-- lineage above; `role` is 'purged', `timestamp` stays, all else is empty. It identifies entries of a copied session; that of another
-- agent's message has hashes of what it said in the second half of the number.

-- An index of lineages alone would change a random page for each new message: half of what a large import writes. New messages
-- extend these at their ends. Lineages are unique, since each follows from its parent's; half of one tells siblings apart.
CREATE UNIQUE INDEX messages_by_parent ON messages (parent_id, substr(lineage, 1, 16));
CREATE UNIQUE INDEX messages_at_root ON messages (substr(lineage, 1, 16)) WHERE parent_id IS NULL;

-- Finds a message by its lineage or short id, in one run of 16,384 rows after the other.
CREATE INDEX messages_by_lineage ON messages (id >> 14, substr(lineage, 1, 6));

-- Finds the few messages that are purged or may change the notes of a branch.
CREATE INDEX messages_marked ON messages (timestamp, parent_id)
 WHERE kind = 4 OR tool_name IN ('lcm_note', 'codemode');

-- Finds the message of a passage, and the next free passage.
CREATE INDEX messages_by_passage ON messages (first_passage) WHERE first_passage IS NOT NULL;

-- The messages in order of time: those of an import are stored later than they were said.
CREATE INDEX messages_by_time ON messages (timestamp) WHERE kind = 0;

-- Finds the messages of a branch that are not plain conversation, and the user's requests, without reading the others.
CREATE INDEX messages_unusual ON messages (id, kind, role) WHERE kind <> 0 OR role = 'user';

CREATE TABLE entries (
  -- One row per entry of a session's tree, of every kind: which session shows which message where.
  id              INTEGER PRIMARY KEY,
  conversation_id INTEGER NOT NULL REFERENCES conversations (id),
  entry_id        TEXT NOT NULL,       -- Pi's id, unique within the session only
  parent_id       INTEGER REFERENCES entries (id),
  kind            INTEGER NOT NULL,    -- 0 link only, 1 message, 2 context edit, 3 compaction
  message_id      INTEGER REFERENCES messages (id), -- its message; for an edit the rendition, NULL where it hides
  head_id         INTEGER,             -- the last message at or above: its lineage is this entry's
  target          TEXT,                -- for an edit: the entry_id it replaces
  files           TEXT,                -- JSON: files listed by a compaction that is not ours
  UNIQUE (conversation_id, entry_id)
) STRICT;

-- `head_id` follows from `message_id` and the parent, as `last_message` of a summary does from its sources. Neither refers to
-- its table: each deleted message would be looked for in all rows, or in an index larger than that is worth.

-- Which sessions show a message.
CREATE INDEX entries_by_message ON entries (message_id, conversation_id) WHERE message_id IS NOT NULL;

-- The children of an entry besides the one in the next row, where nearly all are.
CREATE INDEX entries_aside ON entries (parent_id) WHERE parent_id IS NOT id - 1;

-- Where the rows of a branch begin anew, or an edit stands: between them, each entry is the child of the one before.
CREATE INDEX entries_runs ON entries (conversation_id, id) WHERE parent_id IS NOT id - 1 OR kind = 2;

CREATE TABLE summaries (
  -- Nodes of the DAG.
  id             INTEGER PRIMARY KEY,
  hash           BLOB NOT NULL UNIQUE, -- identity: text, state and sources; short ids are its prefix
  depth          INTEGER NOT NULL,     -- 0 leaf
  text           TEXT NOT NULL,        -- empty where it is packed
  tokens         INTEGER NOT NULL,     -- estimate
  state          TEXT NOT NULL CHECK (state IN ('ok', 'degraded')),
  model          TEXT,                 -- provider/model; NULL for an extract
  prompt_version INTEGER NOT NULL,
  created_at     INTEGER NOT NULL,     -- ms
  first_message  INTEGER NOT NULL REFERENCES messages (id), -- first of its span
  last_message   INTEGER NOT NULL,     -- last of its span
  messages       INTEGER NOT NULL,     -- how many messages the span has
  from_time      INTEGER NOT NULL,     -- ms, of the first message
  to_time        INTEGER NOT NULL,     -- ms, of the last message
  packed         BLOB,                 -- the text, coded as `codec` says; NULL: it is in `text`
  codec          INTEGER,              -- as in messages
  bytes          INTEGER,              -- length of the text before coding
  extras         BLOB                  -- packed JSON {quotes, facts, usage, restored}: what the user said, verbatim; facts of its
                                       -- messages, once extracted; the usage of its model calls; whether a file brought it
) STRICT;

-- Finds the summaries that may be valid on a branch: those that begin with one of its messages.
CREATE INDEX summaries_by_first_message ON summaries (first_message);

-- The summaries in order of time.
CREATE INDEX summaries_by_time ON summaries (from_time);

CREATE TABLE summary_sources (
  -- Edges, ordered. All lineage of the DAG is here. Exactly one of the two sources is set.
  summary_id INTEGER NOT NULL REFERENCES summaries (id),
  ordinal    INTEGER NOT NULL,
  message_id INTEGER REFERENCES messages (id),
  source_id  INTEGER REFERENCES summaries (id),
  PRIMARY KEY (summary_id, ordinal),
  CHECK ((message_id IS NULL) <> (source_id IS NULL))
) STRICT, WITHOUT ROWID;

-- What was condensed from a summary.
CREATE INDEX summary_sources_by_source ON summary_sources (source_id) WHERE source_id IS NOT NULL;
-- Which leaf summaries cover a message.
CREATE INDEX summary_sources_by_message ON summary_sources (message_id) WHERE message_id IS NOT NULL;

CREATE TABLE carried (
  -- Which compaction entry carries which summary in its details.
  entry_id   INTEGER NOT NULL REFERENCES entries (id),
  summary_id INTEGER NOT NULL REFERENCES summaries (id),
  PRIMARY KEY (entry_id, summary_id)
) STRICT, WITHOUT ROWID;

-- Which entries carry a summary.
CREATE INDEX carried_by_summary ON carried (summary_id);

CREATE TABLE claims (
  -- Who is summarizing what, so that two processes do not pay for the same summary. A lease that its owner does not renew ends.
  span  BLOB PRIMARY KEY,  -- hash of the identities of the sources
  owner TEXT NOT NULL,     -- a unique name
  until INTEGER NOT NULL   -- ms; when the lease ends
) STRICT, WITHOUT ROWID;

CREATE TABLE counts (
  -- Counts that would otherwise require reading a whole session, all derived from the other tables. A session without a row is
  -- counted when needed, and gets its row at the next checkpoint.
  conversation_id INTEGER PRIMARY KEY,   -- -1: the whole project, of which only `messages` is counted
  messages        INTEGER NOT NULL,      -- that its entries show, including those kept from the model
  from_time       INTEGER,               -- ms, of the first of kind 0
  to_time         INTEGER,               -- ms, of the last
  first_request   INTEGER,               -- the user's first message
  lowest          INTEGER,               -- the first row of `messages` that an entry refers to
  highest         INTEGER                -- the last
) STRICT;

INSERT INTO counts (conversation_id, messages) VALUES (-1, 0);

CREATE TRIGGER conversations_counted AFTER INSERT ON conversations BEGIN
  INSERT OR REPLACE INTO counts (conversation_id, messages) VALUES (NEW.id, 0);
END;

-- What a sync target has: see docs/sync.md. It is about one target, named in `_metadata`; with another one, sync begins again.

CREATE TABLE synced (
  -- Ranges of rows of `entries` that packs of any machine have.
  first INTEGER PRIMARY KEY,
  last  INTEGER NOT NULL
) STRICT;

CREATE TABLE synced_summaries (
  -- The summaries that packs have.
  hash BLOB PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE packs (
  -- The packs that were read or written here.
  name      TEXT PRIMARY KEY, -- MACHINE/NUMBER-HASH.pack
  closed_to TEXT              -- this machine's key if that does not open it: it was not read
) STRICT, WITHOUT ROWID;

CREATE TABLE machines (
  -- The machines that have written packs, with what the newest pack of each says.
  id     TEXT PRIMARY KEY,
  label  TEXT NOT NULL,
  number INTEGER NOT NULL, -- of that pack
  purged INTEGER NOT NULL  -- how many entries showed a purged message there
) STRICT, WITHOUT ROWID;

CREATE TABLE origins (
  -- The sessions that another machine's pack has brought.
  conversation_id INTEGER PRIMARY KEY REFERENCES conversations (id),
  label           TEXT NOT NULL
) STRICT;

-- Passages of the messages' searchable text. The index stores no text; passages are cut from the message again.
CREATE VIRTUAL TABLE messages_fts USING fts5 (
  body,   -- the passage
  parts,  -- humps of identifiers, pairs of ideographs, seams between passages
  content = '', contentless_delete = 1,
  tokenize = 'porter unicode61 remove_diacritics 2'
);

-- Summaries by text; rowid is the summary's id.
CREATE VIRTUAL TABLE summaries_fts USING fts5 (
  body, parts,
  content = '', contentless_delete = 1,
  tokenize = 'porter unicode61 remove_diacritics 2'
);

-- Two segments of the index on one level are enough for an explicit merge: stores that grow message by message stay as
-- small as those that were filled at once.
INSERT INTO messages_fts (messages_fts, rank) VALUES ('usermerge', 2);

-- The bytes of new postings after which a segment is written within a transaction. SQLite's 1 MB took twice the time for a
-- message of 50 MB: its many segments are merged again and again.
INSERT INTO messages_fts (messages_fts, rank) VALUES ('hashsize', 4194304);
INSERT INTO summaries_fts (summaries_fts, rank) VALUES ('usermerge', 2);

-- An open session's memory of its branch, and the counts, are right as long as rows are only added. A purge, in
-- any process, changes or removes rows: then `rewritten` increases, every session reads its branch again, and everything is
-- counted again.
CREATE TRIGGER entries_changed
AFTER UPDATE OF id, conversation_id, entry_id, parent_id, kind, message_id, head_id, target ON entries BEGIN
  INSERT INTO _metadata (key, value) VALUES ('rewritten', '1') ON CONFLICT (key) DO UPDATE SET value = value + 1;
  DELETE FROM counts;
END;
CREATE TRIGGER entries_removed AFTER DELETE ON entries BEGIN
  INSERT INTO _metadata (key, value) VALUES ('rewritten', '1') ON CONFLICT (key) DO UPDATE SET value = value + 1;
  DELETE FROM counts;
END;
CREATE TRIGGER messages_changed
AFTER UPDATE OF id, lineage, parent_id, kind, role, tokens, timestamp ON messages BEGIN
  INSERT INTO _metadata (key, value) VALUES ('rewritten', '1') ON CONFLICT (key) DO UPDATE SET value = value + 1;
  DELETE FROM counts;
END;
CREATE TRIGGER messages_removed AFTER DELETE ON messages BEGIN
  INSERT INTO _metadata (key, value) VALUES ('rewritten', '1') ON CONFLICT (key) DO UPDATE SET value = value + 1;
  DELETE FROM counts;
END;
CREATE TRIGGER summaries_changed
AFTER UPDATE OF id, hash, depth, tokens, state, prompt_version, first_message, last_message ON summaries BEGIN
  INSERT INTO _metadata (key, value) VALUES ('rewritten', '1') ON CONFLICT (key) DO UPDATE SET value = value + 1;
END;
CREATE TRIGGER summaries_removed AFTER DELETE ON summaries BEGIN
  INSERT INTO _metadata (key, value) VALUES ('rewritten', '1') ON CONFLICT (key) DO UPDATE SET value = value + 1;
END;
CREATE TRIGGER sources_changed AFTER UPDATE ON summary_sources BEGIN
  INSERT INTO _metadata (key, value) VALUES ('rewritten', '1') ON CONFLICT (key) DO UPDATE SET value = value + 1;
END;
CREATE TRIGGER sources_removed AFTER DELETE ON summary_sources BEGIN
  INSERT INTO _metadata (key, value) VALUES ('rewritten', '1') ON CONFLICT (key) DO UPDATE SET value = value + 1;
END;
