-- Two segments of the index on one level are enough for a merge that is asked for: stores that grow message by message
-- stay as small as those that were filled at once.
INSERT INTO messages_fts (messages_fts, rank) VALUES ('usermerge', 2);
INSERT INTO summaries_fts (summaries_fts, rank) VALUES ('usermerge', 2);
