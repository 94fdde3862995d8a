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
  passages      INTEGER NOT NULL,      -- how many
  broken_line   INTEGER                -- 1: has a line that was cut between two passages; a word may stand in neither, so that
                                       -- the index does not tell where it is not
) STRICT;

-- What a purged message leaves is of kind 4: its `json` is a random number (`codec` -1), its lineage is made of that and of the
-- lineage above; `role` is 'purged', `timestamp` stays, all else is empty. An entry of a copied session is known by it.

-- The few messages that are looked for by what is special about them: purged, changing the notes of a branch, or with a cut line.
CREATE INDEX messages_marked ON messages (parent_id, timestamp)
 WHERE kind = 4 OR tool_name = 'lcm_note' OR broken_line = 1;

-- From a passage that was found to its message, and the next free passage.
CREATE INDEX messages_by_passage ON messages (first_passage) WHERE first_passage IS NOT NULL;

CREATE TABLE entries (
  -- Which session shows which message where: one row per entry of a session's tree, of every kind.
  id              INTEGER PRIMARY KEY,
  conversation_id INTEGER NOT NULL REFERENCES conversations (id),
  entry_id        TEXT NOT NULL,       -- Pi's id, unique within the session only
  parent_id       INTEGER REFERENCES entries (id),
  kind            INTEGER NOT NULL,    -- 0 link only, 1 message, 2 context edit, 3 compaction, 4 stub: what the model is shown
                                       -- in place of what `target` shows
  message_id      INTEGER REFERENCES messages (id), -- its message; for an edit the rendition, NULL where it hides
  head_id         INTEGER REFERENCES messages (id), -- the last message at or above: its lineage is this entry's
  target          TEXT,                -- for an edit or a stub: the entry_id it stands for
  files           TEXT,                -- JSON: files that a compaction which is not of ours lists
  stub_tokens     INTEGER,             -- of what a stub shows instead, an estimate; 0 where nothing is shown
  hides           INTEGER,             -- so many hiding edits right below it are ours too: they say so nowhere themselves
  UNIQUE (conversation_id, entry_id)
) STRICT;

-- Which sessions show a message.
CREATE INDEX entries_by_message ON entries (message_id, conversation_id) WHERE message_id IS NOT NULL;

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
  last_message   INTEGER NOT NULL REFERENCES messages (id), -- last of its span
  messages       INTEGER NOT NULL,     -- how many messages the span has
  from_time      INTEGER NOT NULL,     -- ms, of the first message
  to_time        INTEGER NOT NULL,     -- ms, of the last message
  packed         BLOB,                 -- the text, coded as `codec` says; NULL: it stands in `text`
  codec          INTEGER,              -- as in messages
  bytes          INTEGER,              -- length of the text before coding
  beside         BLOB                  -- packed JSON {quotes, files, usage}: what the user said, word for word; files its messages
                                       -- name; what its calls used, as Pi reports usage
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

CREATE TABLE claims (
  -- Who is summarizing what, so that two processes do not pay for the same summary. A lease that its owner does not renew ends.
  span  BLOB PRIMARY KEY,  -- hash over the identities of what the summary is to stand for
  owner TEXT NOT NULL,     -- a name that no other has
  until INTEGER NOT NULL   -- ms; after that it holds no more
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

-- Two segments of the index on one level are enough for a merge that is asked for: stores that grow message by message
-- stay as small as those that were filled at once.
INSERT INTO messages_fts (messages_fts, rank) VALUES ('usermerge', 2);
INSERT INTO summaries_fts (summaries_fts, rank) VALUES ('usermerge', 2);

-- What an open session remembers of its branch holds as long as rows are only added. Where one is changed or removed, in whichever
-- process, that is counted under `rewritten`, and everything is read anew. Files that are looked up later change nothing.
CREATE TRIGGER entries_changed
AFTER UPDATE OF id, conversation_id, entry_id, parent_id, kind, message_id, head_id, target ON entries BEGIN
  INSERT INTO _metadata (key, value) VALUES ('rewritten', '1') ON CONFLICT (key) DO UPDATE SET value = value + 1;
END;
CREATE TRIGGER entries_removed AFTER DELETE ON entries BEGIN
  INSERT INTO _metadata (key, value) VALUES ('rewritten', '1') ON CONFLICT (key) DO UPDATE SET value = value + 1;
END;
CREATE TRIGGER messages_changed
AFTER UPDATE OF id, lineage, parent_id, kind, role, tokens, timestamp ON messages BEGIN
  INSERT INTO _metadata (key, value) VALUES ('rewritten', '1') ON CONFLICT (key) DO UPDATE SET value = value + 1;
END;
CREATE TRIGGER messages_removed AFTER DELETE ON messages BEGIN
  INSERT INTO _metadata (key, value) VALUES ('rewritten', '1') ON CONFLICT (key) DO UPDATE SET value = value + 1;
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
