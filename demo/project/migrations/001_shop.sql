-- Amounts are in cents, times in milliseconds.
CREATE TABLE products (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, price INTEGER NOT NULL, stock INTEGER NOT NULL CHECK (stock >= 0)
) STRICT;
CREATE TABLE reservations (
  product INTEGER NOT NULL REFERENCES products, cart TEXT NOT NULL, quantity INTEGER NOT NULL, until INTEGER NOT NULL
) STRICT;
CREATE TABLE orders (
  id INTEGER PRIMARY KEY, customer TEXT NOT NULL, email TEXT NOT NULL, total INTEGER NOT NULL,
  status TEXT NOT NULL DEFAULT 'placed', created INTEGER NOT NULL
) STRICT;
CREATE TABLE items (
  "order" INTEGER NOT NULL REFERENCES orders, product INTEGER NOT NULL REFERENCES products, quantity INTEGER NOT NULL, price INTEGER NOT NULL
) STRICT;
