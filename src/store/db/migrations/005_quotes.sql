-- What a summary has beside its text.
ALTER TABLE summaries ADD COLUMN quotes TEXT;           -- JSON: what the user said, word for word. NULL: nothing
ALTER TABLE summaries ADD COLUMN files TEXT;            -- JSON: files its messages name. NULL: not looked up, or a condensed one

CREATE TABLE entry_files (
  -- Files that a compaction which is not of ours lists; the messages behind it may be gone.
  entry_id INTEGER PRIMARY KEY REFERENCES entries (id),
  files    TEXT NOT NULL                                -- JSON
) STRICT;
