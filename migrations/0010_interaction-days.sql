-- Interactions are partitioned by day, and a day that is written to has its primary key alone: each further index costs an
-- interaction 4 microseconds and 130 bytes of log. When a day is over, its other indexes are built at once, for a tenth.
set local lock_timeout = '3s';

lock table interactions in access exclusive mode;

-- Which partitions there are, and which have the indexes of a day that is over. Ids from first_id on and before end_id.
create table interaction_partitions (
  name text primary key,
  first_id uuid not null unique,
  end_id uuid not null,
  is_indexed boolean not null default false
);

drop index interactions_by_interaction_type, interactions_by_item_type, interactions_by_item, interactions_by_student,
  interactions_by_user, interactions_by_source, interactions_by_recommendation;

drop function ensure_interaction_partitions(integer);

-- Months that hold something stay as they are; days follow them.
do $$
declare
  partition record;
  is_used boolean;
begin
  for partition in
    select c.relname as name, to_date(right(c.relname, 7), 'YYYY_MM')::timestamp at time zone 'UTC' as month
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'public.interactions'::regclass
  loop
    execute format('select exists (select from public.%I)', partition.name) into is_used;
    if is_used then
      insert into interaction_partitions (name, first_id, end_id)
      values (partition.name, uuid_floor(partition.month),
              uuid_floor((partition.month at time zone 'UTC' + interval '1 month') at time zone 'UTC'));
    else
      execute format('drop table public.%I', partition.name);
    end if;
  end loop;
end
$$;

-- Makes the partitions of the last two days (a clock may be behind), of today and of the days ahead. It runs as the owner,
-- so that the service may call it without the right to create tables. Attaching a table that is already made takes a lock
-- that lets reads and writes go on, which creating a partition in place would not.
create function ensure_interaction_partitions(days_ahead integer) returns void
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set timezone = 'UTC' set lock_timeout = '2s' as $$
declare
  day timestamptz;
  partition text;
begin
  if days_ahead not between 1 and 366 then
    raise exception 'days_ahead must be from 1 to 366';
  end if;
  perform pg_advisory_xact_lock(hashtext('ensure_interaction_partitions'));
  for day in
    select generate_series(date_trunc('day', now()) - interval '2 days',
                           date_trunc('day', now()) + make_interval(days => days_ahead), interval '1 day')
  loop
    continue when exists (
      select from public.interaction_partitions
      where first_id <= public.uuid_floor(day) and end_id > public.uuid_floor(day));
    partition := 'interactions_' || to_char(day, 'YYYY_MM_DD');
    execute format('create table public.%I (like public.interactions including defaults including indexes)', partition);
    execute format('alter table public.interactions attach partition public.%I for values from (%L) to (%L)',
                   partition, public.uuid_floor(day), public.uuid_floor(day + interval '1 day'));
    insert into public.interaction_partitions (name, first_id, end_id)
    values (partition, public.uuid_floor(day), public.uuid_floor(day + interval '1 day'));
  end loop;
end
$$;

-- Builds one index of the newest partition that ended an hour ago and lacks some; false where there is no such partition.
-- One a call, so that a large partition is done in steps. Each ends with the identifier, which is the order of a list. A
-- clock that is behind by more than that hour waits.
create function index_interaction_partition() returns boolean
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set lock_timeout = '2s' as $$
declare
  partition text;
  indexed text;
begin
  select name into partition from public.interaction_partitions
  where end_id <= public.uuid_floor(now() - interval '1 hour') and not is_indexed
  order by first_id desc limit 1 for update skip locked;
  if not found then
    return false;
  end if;
  foreach indexed in array array['item_id', 'student_id', 'user_id', 'recommendation_id'] loop
    if to_regclass(format('public.%I', partition || '_by_' || indexed)) is null then
      execute format('create index %I on public.%I (organisation_id, %I, interaction_id) where %3$I is not null',
                     partition || '_by_' || indexed, partition, indexed);
      return true;
    end if;
  end loop;
  execute format('analyze public.%I', partition);
  update public.interaction_partitions set is_indexed = true where name = partition;
  return true;
end
$$;

revoke execute on function ensure_interaction_partitions, index_interaction_partition from public;

select ensure_interaction_partitions(35);
