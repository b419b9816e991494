-- The lake: the organisations whose data is also written to files, and the progress of `intake-server lake` for each.
set local lock_timeout = '3s';

alter table organisations add column lake boolean not null default false;

-- With this index, organisations without a lake cost the lake's processes nothing.
create index organisations_with_lake on organisations (organisation_id) where lake;

-- Each commit to a lake table also contains its position (`txn`). With this table, the remaining work can be determined
-- without reading the store. The table also contains the epoch, for which a commit has no room.
create table lake_progress (
  organisation_id uuid primary key,
  -- The last change that is in the lake's tables, and the epoch in which the change got its number.
  number bigint not null,
  epoch text not null,
  -- The position of the last commit to each lake table. A table with a smaller position has lost commits and is filled
  -- again.
  positions jsonb not null default '{}',
  -- While stored rows are being copied, the current type and the last id that was copied. Null when copying is
  -- finished.
  copied_type text,
  copied_after uuid,
  -- Once everything is copied, the tables contain everything that was stored before this time.
  as_of timestamptz,
  -- The time at which the removal of the files started. Nothing is written until they are gone.
  removing_since timestamptz
);

-- Organisations are spread over 64 slots by their ids. A process writes the lakes of the organisations in its slots.
-- Like a lease, a slot becomes free again when it expires.
create table lake_slots (
  slot integer primary key,
  holder uuid,
  ends_at timestamptz not null default '-infinity'
);
insert into lake_slots (slot) select generate_series(0, 63);

-- The processes that share the slots.
create table lake_processes (
  process_id uuid primary key,
  ends_at timestamptz not null
);
