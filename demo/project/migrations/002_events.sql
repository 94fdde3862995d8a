-- An event of the payment provider that was handled. The provider may deliver it any number of times.
CREATE TABLE events (
  id TEXT PRIMARY KEY, "order" INTEGER NOT NULL REFERENCES orders, received INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
