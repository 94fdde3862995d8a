-- The whole store. Comments stand inside the statements, so that `.schema` shows them.
-- A shipped migration never changes; the next one is a new file.

CREATE TABLE _metadata (
  -- What the database says of itself: `cwd`, the project it belongs to.
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
  lineage       BLOB NOT NULL UNIQUE,  -- sha256(parent's lineage, sha256(json)); short ids are its prefix
  parent_id     INTEGER REFERENCES messages (id), -- the message before; for kind 3 the message it is a rendition of
  height        INTEGER NOT NULL,      -- messages above it on its lineage
  kind          INTEGER NOT NULL,      -- 0 conversation, 1 private (kept from the model), 2 system, 3 edited rendition
  role          TEXT NOT NULL,
  tool_name     TEXT,                  -- of a tool result
  tokens        INTEGER NOT NULL,      -- estimate
  timestamp     INTEGER NOT NULL,      -- ms
  json          BLOB NOT NULL,         -- exactly what JSON.stringify gave, coded as `codec` says
  codec         INTEGER NOT NULL,      -- 0 plain, 1 zstd
  bytes         INTEGER NOT NULL,      -- length of the JSON before coding
  first_passage INTEGER,               -- rowid of its first passage in messages_fts, the others follow; NULL: not searched
  passages      INTEGER NOT NULL       -- how many
) STRICT;

-- From a passage that was found to its message, and the next free passage.
CREATE INDEX messages_by_passage ON messages (first_passage) WHERE first_passage IS NOT NULL;

CREATE TABLE entries (
  -- Which session shows which message where: one row per entry of a session's tree, of every kind.
  id              INTEGER PRIMARY KEY,
  conversation_id INTEGER NOT NULL REFERENCES conversations (id),
  entry_id        TEXT NOT NULL,       -- Pi's id, unique within the session only
  parent_id       INTEGER REFERENCES entries (id),
  kind            INTEGER NOT NULL,    -- 0 link only, 1 message, 2 context edit, 3 compaction
  message_id      INTEGER REFERENCES messages (id), -- its message; for an edit the rendition, NULL where it hides
  head_id         INTEGER REFERENCES messages (id), -- the last message at or above: its lineage is this entry's
  target          TEXT,                -- for an edit: the entry_id it edits
  UNIQUE (conversation_id, entry_id)
) STRICT;

-- Which sessions show a message.
CREATE INDEX entries_by_message ON entries (message_id, conversation_id) WHERE message_id IS NOT NULL;

CREATE TABLE summaries (
  -- Nodes of the DAG.
  id             INTEGER PRIMARY KEY,
  hash           BLOB NOT NULL UNIQUE, -- identity: text, state and sources; short ids are its prefix
  depth          INTEGER NOT NULL,     -- 0 leaf
  text           TEXT NOT NULL,
  tokens         INTEGER NOT NULL,     -- estimate
  state          TEXT NOT NULL CHECK (state IN ('ok', 'degraded')),
  model          TEXT,                 -- provider/model; NULL for an extract
  prompt_version INTEGER NOT NULL,
  usage          TEXT,                 -- JSON, as Pi reports usage
  created_at     INTEGER NOT NULL,     -- ms
  first_message  INTEGER NOT NULL REFERENCES messages (id), -- first of its span
  last_message   INTEGER NOT NULL REFERENCES messages (id), -- last of its span
  messages       INTEGER NOT NULL,     -- how many messages the span has
  from_time      INTEGER NOT NULL,     -- ms, of the first message
  to_time        INTEGER NOT NULL      -- ms, of the last message
) STRICT;

-- The summaries that may hold on a branch: those that begin with one of its messages.
CREATE INDEX summaries_by_first_message ON summaries (first_message);

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

-- Passages of the messages' searchable text. It keeps no text: that is cut from the message again.
CREATE VIRTUAL TABLE messages_fts USING fts5 (
  body,   -- the passage
  parts,  -- humps of identifiers, pairs of ideographs
  content = '', contentless_delete = 1,
  tokenize = 'porter unicode61 remove_diacritics 2'
);

-- Summaries by text; rowid is the summary's id.
CREATE VIRTUAL TABLE summaries_fts USING fts5 (
  body, parts,
  content = '', contentless_delete = 1,
  tokenize = 'porter unicode61 remove_diacritics 2'
);
