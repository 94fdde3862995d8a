-- What a summary has beside its text packs as well as the text does, and few entries list files: a column needs no page of
-- its own.
ALTER TABLE summaries ADD COLUMN beside BLOB;           -- packed JSON {quotes, files, usage}: what the user said, word for word;
                                                        -- files its messages name; what its calls used, as Pi reports usage
UPDATE summaries
   SET beside = sealed(json_object('quotes', json(quotes), 'files', json(files), 'usage', json(usage)))
 WHERE coalesce(quotes, files, usage) IS NOT NULL;
ALTER TABLE summaries DROP COLUMN quotes;
ALTER TABLE summaries DROP COLUMN files;
ALTER TABLE summaries DROP COLUMN usage;

ALTER TABLE entries ADD COLUMN files TEXT;              -- JSON: files that a compaction which is not of ours lists
UPDATE entries SET files = listed.files FROM entry_files listed WHERE listed.entry_id = entries.id;
DROP TABLE entry_files;
