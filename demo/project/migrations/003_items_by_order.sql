CREATE INDEX items_by_order ON items ("order");
