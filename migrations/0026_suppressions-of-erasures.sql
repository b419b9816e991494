-- A suppression belongs to one erasure, so that lifting an erasure leaves other erasures of the same person in force. It also
-- names the key that its hash was made with, so that a process that lacks the key notices.
set local lock_timeout = '3s';
-- In a cluster, several statements on a table that is altered on all nodes in parallel fail in one transaction.
set local citus.multi_shard_modify_mode = 'sequential';

alter table suppressions drop constraint suppressions_pkey;
alter table suppressions add constraint suppressions_pkey primary key (organisation_id, hash, erasure_id);
alter table suppressions
  -- The first 8 bytes of HMAC-SHA-256(key, 'fingerprint'). Null if an older version added the suppression.
  add column key_fingerprint bytea,
  -- Since when the person may be stored again, as far as this erasure is concerned. Older versions do not read it and keep
  -- refusing the person until they are replaced.
  add column lifted_at timestamptz,
  -- When the suppression had been lifted before the database was restored. It is lifted again when the erasure has been
  -- repeated.
  add column lifted_before timestamptz;

-- The keys that an organisation's hashes were made with: what the suppressions say, without reading all of them.
create table erasure_keys (
  organisation_id uuid not null,
  fingerprint bytea not null,
  primary key (organisation_id, fingerprint)
);

-- Older versions work with the longer key, because they insert with `on conflict do nothing` and look hashes up by prefix.
update schema_compatibility set oldest_code = 1;
