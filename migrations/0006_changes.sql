-- The change log. Each transaction that stores records or interactions adds a row per type, with the ids that it created
-- or changed. The change feed reads it.

create table changes (
  organisation_id uuid not null,
  -- A UUIDv7: its first 48 bits are the time of writing, and determine the partition.
  change_id uuid not null,
  -- Assigned after the commit, in order, by readers of the log (src/changes/change-log.ts); null until then.
  number bigint,
  type text not null,
  -- The number of ids: counting the elements of the array would fetch all of it.
  size integer not null,
  -- Random ids do not compress, and trying costs as much as storing them.
  ids uuid[] not null,
  primary key (organisation_id, change_id)
) partition by range (change_id);

alter table changes alter column ids set storage external;

create index changes_by_number on changes (organisation_id, number) where number is not null;
create index changes_without_number on changes (organisation_id, change_id) where number is null;

-- One row for each organisation that has changes. A transaction that assigns numbers locks it first.
create table change_counters (
  organisation_id uuid primary key,
  last_number bigint not null,
  -- Changes up to this number may have been dropped.
  forgotten_number bigint not null,
  -- The start time of the server that assigned the last number.
  server_started text,
  -- The servers that assigned numbers, oldest first: {"id": …, "first": …}, a random id and the first number of each.
  epochs jsonb not null default '[]'
);

-- Signs the cursors of the change feed, of replays and of reports, so that only the server can make them. It is made here,
-- so that all processes sign with the same key and none has to be configured.
create table cursor_key (
  is_only boolean primary key default true check (is_only),
  key bytea not null
);
insert into cursor_key (key)
select sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));

-- Makes the partitions of the last two days (a clock may be behind), of today and of the days ahead. For attaching, see
-- ensure_interaction_partitions.
create function ensure_change_partitions(days_ahead integer) returns void
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set timezone = 'UTC' set lock_timeout = '2s' as $$
declare
  day timestamptz;
  partition text;
begin
  if days_ahead not between 1 and 366 then
    raise exception 'days_ahead must be from 1 to 366';
  end if;
  perform pg_advisory_xact_lock(hashtext('ensure_change_partitions'));
  for day in
    select generate_series(date_trunc('day', now()) - interval '2 days',
                           date_trunc('day', now()) + make_interval(days => days_ahead), interval '1 day')
  loop
    partition := 'changes_' || to_char(day, 'YYYY_MM_DD');
    continue when to_regclass('public.' || partition) is not null;
    execute format('create table public.%I (like public.changes including defaults including indexes including storage)', partition);
    execute format('alter table public.changes attach partition public.%I for values from (%L) to (%L)',
                   partition, public.uuid_floor(day), public.uuid_floor(day + interval '1 day'));
  end loop;
end
$$;

-- Detaches the oldest day that ended more than days_kept days ago, and renames it for drop_detached_changes; returns false
-- if there is none. Its numbers must be noted in change_counters first. Two steps, as for a week of receipts.
create function detach_change_partition(days_kept integer) returns boolean
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set timezone = 'UTC' set lock_timeout = '2s' as $$
declare
  partition text;
begin
  if days_kept < 1 then
    raise exception 'days_kept must be 1 or more';
  end if;
  perform pg_advisory_xact_lock(hashtext('ensure_change_partitions'));
  select c.relname into partition
  from pg_inherits i join pg_class c on c.oid = i.inhrelid
  where i.inhparent = 'public.changes'::regclass and c.relname ~ '^changes_\d{4}_\d\d_\d\d$'
    and right(c.relname, 10) < to_char(now() - make_interval(days => days_kept), 'YYYY_MM_DD')
    -- ensure_change_partitions makes these two again each hour.
    and right(c.relname, 10) < to_char(now() - interval '2 days', 'YYYY_MM_DD')
  order by c.relname limit 1;
  if partition is null then
    return false;
  end if;
  execute format('alter table public.changes detach partition public.%I', partition);
  execute format('alter table public.%I rename to %I', partition, 'to_drop_' || partition);
  return true;
end
$$;

create function drop_detached_changes(partition text) returns void
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set lock_timeout = '2s' as $$
begin
  if partition !~ '^to_drop_changes_\d{4}_\d\d_\d\d$' then
    raise exception 'not a detached day of changes: %', partition;
  end if;
  if not pg_try_advisory_xact_lock(hashtext(partition)) or to_regclass('public.' || partition) is null then
    return;
  end if;
  execute format('drop table public.%I', partition);
end
$$;

revoke execute on function ensure_change_partitions, detach_change_partition, drop_detached_changes from public;

select ensure_change_partitions(28);
