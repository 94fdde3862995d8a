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
