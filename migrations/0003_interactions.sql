-- Interactions are only ever added, and one organisation may have 10^9 of them. The table is partitioned by range of the
-- id, a UUIDv7, whose first 48 bits are the time of receipt: the id alone determines the partition, and no clock can make
-- the two disagree. A partition is a day. A day that is still written to has its primary key alone: each further index
-- costs an interaction 4 microseconds and 130 bytes of log. After the day has ended, its other indexes are built in one
-- go, for a tenth of that.
create table interactions (
  organisation_id uuid not null,
  interaction_id uuid not null,
  interaction_type text not null,
  user_id text,
  student_id uuid,
  item_type text not null,
  item_id uuid not null,
  city text,
  country text,
  platform text,
  -- As sent, a number or a string; event_time is the instant that it names.
  event_timestamp jsonb not null,
  source text,
  recommendation_id uuid,
  event_time timestamptz not null,
  primary key (organisation_id, interaction_id)
) partition by range (interaction_id);

create table interaction_idempotency_keys (
  organisation_id uuid not null,
  idempotency_key text not null,
  body_sha256 bytea not null,
  interaction_id uuid not null,
  claimed_at timestamptz not null,
  primary key (organisation_id, idempotency_key)
);

create index interaction_idempotency_keys_by_age on interaction_idempotency_keys (claimed_at);

-- The partitions and whether they have all their indexes. A partition holds ids from first_id up to, but not including,
-- end_id.
create table interaction_partitions (
  name text primary key,
  first_id uuid not null unique,
  end_id uuid not null,
  is_indexed boolean not null default false
);

-- The smallest UUIDv7 of an instant.
create function uuid_floor(instant timestamptz) returns uuid
language sql immutable strict parallel safe as $$
  select rpad(lpad(to_hex((extract(epoch from instant) * 1000)::bigint), 12, '0'), 32, '0')::uuid
$$;

-- Makes the partitions of the last two days (a clock may be behind), of today and of the days ahead. Runs as the owner, so
-- that the service can call it without the right to create tables. Attaching an existing table takes a lock that lets
-- reads and writes continue; creating a partition in place does not.
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

-- Builds one index of the newest partition that ended at least an hour ago and lacks some; returns false if there is no
-- such partition. One index per call, so that a large partition is done in steps. The hour leaves room for clocks that
-- are behind. Each index ends with the id, which is the order of a list.
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
