-- One invoice is booked once, however often it arrives. Rows from before this migration have none.
ALTER TABLE invoices ADD COLUMN fingerprint TEXT;

CREATE UNIQUE INDEX invoices_fingerprint ON invoices (fingerprint) WHERE fingerprint IS NOT NULL;
