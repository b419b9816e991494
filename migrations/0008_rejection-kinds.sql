-- What a record failed for is kept once for all records that failed for the same, and counted as it changes: a summary
-- of a million rejections reads a few rows. Of one record there is one rejection, of its newest version. And rejections
-- are no longer partitioned: an upload looks for them by the ids of its records, once instead of once a week.

-- While this waits for a table that somebody reads, whoever comes after waits too: rather give up and be run again.
set local lock_timeout = '3s';

create table rejection_kinds (
  organisation_id uuid not null,
  -- A hash of the type and the reasons.
  kind_id uuid not null,
  type text not null,
  -- One element per bad field, of all three alike.
  fields text[] not null,
  codes text[] not null,
  messages text[] not null,
  -- When a record failed for it, to the hour: one that nothing fails for any more is removed.
  used_at timestamptz not null,
  -- How many there are, without the differences since they were rolled up.
  rejections bigint not null default 0,
  primary key (organisation_id, kind_id)
);

create table rejection_count_changes (
  organisation_id uuid not null,
  kind_id uuid not null,
  rejections bigint not null
);

create index rejection_count_changes_of_organisation on rejection_count_changes (organisation_id, kind_id);

alter table rejections rename to old_rejections;
alter index rejections_pkey rename to old_rejections_pkey;
alter index rejections_by_type rename to old_rejections_by_type;
alter index rejections_by_request rename to old_rejections_by_request;
alter index rejections_by_record rename to old_rejections_by_record;

create table rejections (
  organisation_id uuid not null,
  -- A UUIDv7: the time at which the record failed.
  rejection_id uuid not null,
  type text not null,
  kind_id uuid not null,
  request_id uuid not null,
  -- Where the record stood in its request.
  index integer not null,
  record_id uuid,
  -- When the record says that it was changed.
  updated timestamptz,
  -- JSON as it was sent, or as it would have been stored; null where it was not kept.
  record text,
  primary key (organisation_id, rejection_id)
);

insert into rejection_kinds (organisation_id, kind_id, type, fields, codes, messages, used_at)
select distinct organisation_id, md5(concat_ws('|', type, fields, codes, messages))::uuid, type, fields, codes, messages, now()
from old_rejections;

insert into rejections
select organisation_id, rejection_id, type, md5(concat_ws('|', type, fields, codes, messages))::uuid, request_id, index,
  record_id, updated, record
from (
  select *, row_number() over (partition by organisation_id, type, record_id order by rejection_id desc) as newest
  from old_rejections) as old
where record_id is null or newest = 1;

update rejection_kinds k set rejections = counted.rejections
from (select organisation_id, kind_id, count(*) as rejections from rejections group by organisation_id, kind_id) as counted
where (counted.organisation_id, counted.kind_id) = (k.organisation_id, k.kind_id);

drop table old_rejections;
drop table open_rejections;
do $$
declare
  leftover text;
begin
  for leftover in select relname from pg_class where relnamespace = 'public'::regnamespace and relname ~ '^to_drop_rejections_' loop
    execute format('drop table public.%I', leftover);
  end loop;
end
$$;

create index rejections_by_type on rejections (organisation_id, type, rejection_id);
create index rejections_by_kind on rejections (organisation_id, kind_id, rejection_id);
create index rejections_by_request on rejections (organisation_id, request_id, rejection_id);
create unique index rejections_by_record on rejections (organisation_id, type, record_id) where record_id is not null;

alter table record_counts drop column rejections;
alter table record_count_changes drop column rejections;

create or replace function ensure_weekly_partitions(weeks_ahead integer) returns void
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

-- As in 0006, without the rejections.
create or replace function detach_weekly_partition(days_kept integer) returns boolean
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
  -- Locks the parent, then the partition.
  execute format('alter table public.%I detach partition public.%I', parent, partition);
  execute format('alter table public.%I rename to %I', partition, 'to_drop_' || partition);
  return true;
end
$$;

create or replace function drop_detached_partition(partition text) returns void
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
