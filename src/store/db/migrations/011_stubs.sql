-- An entry by which we show the model a stub in place of what another entry shows: kind 4, with its `target`. What the store knows
-- of the branch does not change by it.
ALTER TABLE entries ADD COLUMN stub_tokens INTEGER;     -- of what is shown instead, an estimate; 0 where nothing is
ALTER TABLE entries ADD COLUMN hides INTEGER;           -- so many hiding edits right below it are ours too: they say so nowhere themselves
