-- What a message leaves that was purged: kind 4. Its `json` is a random number (`codec` -1), its lineage is made of that and of
-- the lineage above; `role` is 'purged', `timestamp` stays, all else is empty. An entry of a copied session is known by it.
CREATE INDEX messages_purged ON messages (parent_id, timestamp) WHERE kind = 4;
