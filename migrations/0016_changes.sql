-- The change log. Each transaction that stores records or interactions adds a row for each type, with the ids of those that
-- it created or changed. The change feed reads it, and what maintenance derives from the data can.
-- While this waits for a table that somebody reads, whoever comes after waits too: rather give up and be run again.
set local lock_timeout = '3s';

create table changes (
  organisation_id uuid not null,
  -- A UUIDv7: its first 48 bits are the time of writing, and find the partition.
  change_id uuid not null,
  -- Given after the commit, in order, by whoever reads (src/changes/change-log.ts); null until then.
  number bigint,
  type text not null,
  -- How many ids there are: to count those of an array PostgreSQL has to fetch all of them.
  size integer not null,
  ids uuid[] not null,
  primary key (organisation_id, change_id)
) partition by range (change_id);

-- Ids do not compress, and trying to costs as much as storing them.
alter table changes alter column ids set storage external;

create index changes_by_number on changes (organisation_id, number) where number is not null;
create index changes_without_number on changes (organisation_id, change_id) where number is null;

-- One row for each organisation that has changes. Whoever gives numbers locks it first.
create table change_counters (
  organisation_id uuid primary key,
  last_number bigint not null,
  -- Changes up to this number may have been dropped.
  forgotten_number bigint not null
);

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

-- Detaches the oldest day that ended before so many days ago, and marks it by its name for drop_detached_changes; false
-- where there is none. What it held must be noted in change_counters before. In two steps, as a week of receipts.
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
    -- These two are made again each hour.
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
