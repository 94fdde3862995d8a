CREATE TABLE claims (
  -- Who is summarising what, so that two processes do not pay for the same summary. A lease that its owner does not renew ends.
  span  BLOB PRIMARY KEY,  -- hash over the identities of what the summary is to stand for
  owner TEXT NOT NULL,     -- a name that no other has
  until INTEGER NOT NULL   -- ms; after that it holds no more
) STRICT, WITHOUT ROWID;
