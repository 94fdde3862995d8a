-- Summaries are text like messages, and pack as well.
ALTER TABLE summaries ADD COLUMN packed BLOB;           -- the text as `codec` says; `text` is empty then. NULL: it stands in `text`
ALTER TABLE summaries ADD COLUMN codec INTEGER;         -- as in messages
ALTER TABLE summaries ADD COLUMN bytes INTEGER;         -- length of the text before coding
