-- Invoices we received and invoices we send; what is still to be delivered.
CREATE TABLE invoices (
  id        INTEGER PRIMARY KEY,
  direction TEXT NOT NULL CHECK (direction IN ('in', 'out')),
  number    TEXT NOT NULL,
  partner   TEXT NOT NULL,
  date      TEXT NOT NULL,
  due       TEXT NOT NULL,
  currency  TEXT NOT NULL,
  -- Minor units, as text: a bigint survives, a float never gets near it.
  total     TEXT NOT NULL,
  body      TEXT NOT NULL,
  paid_on   TEXT,
  created   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ'))
) STRICT;

CREATE TABLE deliveries (
  id           INTEGER PRIMARY KEY,
  invoice      INTEGER NOT NULL REFERENCES invoices (id),
  channel      TEXT NOT NULL CHECK (channel IN ('peppol', 'mail')),
  state        TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'leased', 'done', 'dead')),
  attempts     INTEGER NOT NULL DEFAULT 0,
  -- Not before this time; NULL means now.
  next_at      INTEGER,
  leased_by    TEXT,
  leased_until INTEGER,
  last_error   TEXT
) STRICT;

CREATE INDEX deliveries_due ON deliveries (state, next_at);

CREATE TABLE numbers (
  year INTEGER PRIMARY KEY,
  last INTEGER NOT NULL
) STRICT;
