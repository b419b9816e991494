-- The result of each upload. The first batch that is stored writes the row, and each later batch adds to it, in the
-- batch's own transaction: a receipt and its records are committed together or not at all.
create table receipts (
  organisation_id uuid not null,
  -- A UUIDv7: its first 48 bits are the time of receipt, and determine the partition.
  request_id uuid not null,
  -- Null for a replay of rejections of several types.
  type text,
  operation text not null,
  -- Combined status of the batches so far.
  status smallint not null,
  key_id text not null,
  idempotency_key text,
  body_bytes integer not null,
  duration_ms integer not null,
  -- How many batches the request has, and the numbers of those that are stored.
  batch_count integer not null,
  batches integer[] not null,
  received integer not null,
  created integer not null,
  updated integer not null,
  unchanged integer not null,
  stale integer not null,
  failed integer not null,
  primary key (organisation_id, request_id)
) partition by range (request_id);

-- The answers as they were given. In a table of their own, because an answer with many errors is large and PostgreSQL
-- writes the whole row on every update.
create table receipt_batches (
  organisation_id uuid not null,
  request_id uuid not null,
  batch integer not null,
  answer text not null,
  primary key (organisation_id, request_id, batch)
) partition by range (request_id);

create index receipts_by_type on receipts (organisation_id, type, request_id);
create index receipts_by_status on receipts (organisation_id, status, request_id);
create index receipts_by_idempotency_key on receipts (organisation_id, idempotency_key)
  where idempotency_key is not null;

create table upload_idempotency_keys (
  organisation_id uuid not null,
  idempotency_key text not null,
  request_id uuid not null,
  type text not null,
  body_sha256 bytea not null,
  claimed_at timestamptz not null,
  primary key (organisation_id, idempotency_key)
);

create index upload_idempotency_keys_by_age on upload_idempotency_keys (claimed_at);

-- Partitions are weeks, made ahead and dropped when they are old, by functions of the owner, so that the service can call
-- them without the right to create or drop tables. For attaching, see ensure_interaction_partitions.
create function ensure_weekly_partitions(weeks_ahead integer) returns void
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set timezone = 'UTC' set lock_timeout = '2s' as $$
declare
  parent text;
  week timestamptz;
  partition text;
begin
  if weeks_ahead not between 1 and 52 then
    raise exception 'weeks_ahead must be from 1 to 52';
  end if;
  perform pg_advisory_xact_lock(hashtext('ensure_weekly_partitions'));
  foreach parent in array array['receipts', 'receipt_batches'] loop
    for week in
      select generate_series(date_trunc('week', now()) - interval '1 week',
                             date_trunc('week', now()) + make_interval(weeks => weeks_ahead), interval '1 week')
    loop
      partition := parent || '_' || to_char(week, 'YYYY_MM_DD');
      continue when to_regclass('public.' || partition) is not null;
      execute format('create table public.%I (like public.%I including defaults including indexes)', partition, parent);
      execute format('alter table public.%I attach partition public.%I for values from (%L) to (%L)',
                     parent, partition, public.uuid_floor(week), public.uuid_floor(week + interval '1 week'));
    end loop;
  end loop;
end
$$;

-- An old week is removed in two steps. Detaching its tables is short but excludes everyone; dropping a detached table may
-- take long and excludes nobody.

-- Detaches one table of a week that ended more than days_kept days ago, the oldest first; returns false if there is none.
-- The new name marks it for drop_detached_partition, and distinguishes it from tables that somebody detached by hand.
-- One parent per transaction: an upload locks receipt_batches and receipts in an order of its own, and would deadlock with
-- a transaction that holds one of them and waits for the other. Receipts are detached before their answers, so that a
-- receipt that is found is complete.
create function detach_weekly_partition(days_kept integer) returns boolean
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set timezone = 'UTC' set lock_timeout = '2s' as $$
declare
  parent text;
  partition text;
begin
  if days_kept < 7 then
    raise exception 'days_kept must be 7 or more';
  end if;
  perform pg_advisory_xact_lock(hashtext('ensure_weekly_partitions'));
  select p.relname, c.relname into parent, partition
  from pg_inherits i join pg_class p on p.oid = i.inhparent join pg_class c on c.oid = i.inhrelid
  where p.oid in ('public.receipts'::regclass, 'public.receipt_batches'::regclass)
    and c.relname ~ '_\d{4}_\d\d_\d\d$'
    and right(c.relname, 10) <= to_char(now() - make_interval(days => days_kept + 7), 'YYYY_MM_DD')
  order by right(c.relname, 10), array_position(array['receipts', 'receipt_batches'], p.relname::text)
  limit 1;
  if partition is null then
    return false;
  end if;
  -- Locks the parent, then the partition, as queries do.
  execute format('alter table public.%I detach partition public.%I', parent, partition);
  execute format('alter table public.%I rename to %I', partition, 'to_drop_' || partition);
  return true;
end
$$;

-- Drops a table that detach_weekly_partition has detached. If another session is dropping it already, leaves it alone.
create function drop_detached_partition(partition text) returns void
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set lock_timeout = '2s' as $$
begin
  if partition !~ '^to_drop_(receipts|receipt_batches)_\d{4}_\d\d_\d\d$' then
    raise exception 'not a detached week: %', partition;
  end if;
  if pg_try_advisory_xact_lock(hashtext(partition)) and to_regclass('public.' || partition) is not null then
    execute format('drop table public.%I', partition);
  end if;
end
$$;

revoke execute on function ensure_weekly_partitions, detach_weekly_partition, drop_detached_partition from public;

select ensure_weekly_partitions(4);
