-- Interactions are only ever added, one organisation may have 10^9 of them, and old ones go by the month. So the table
-- is partitioned by range of the identifier, a UUIDv7, whose first 48 bits are the time of receipt: the identifier alone
-- finds its partition, and no clock can make the two disagree.
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

-- One index for each way of asking; each ends with the identifier, which is the order of the answer.
create index interactions_by_interaction_type on interactions (organisation_id, interaction_type, interaction_id);
create index interactions_by_item_type on interactions (organisation_id, item_type, interaction_id);
create index interactions_by_item on interactions (organisation_id, item_id, interaction_id);
create index interactions_by_student on interactions (organisation_id, student_id, interaction_id)
  where student_id is not null;
create index interactions_by_user on interactions (organisation_id, user_id, interaction_id)
  where user_id is not null;
create index interactions_by_source on interactions (organisation_id, source, interaction_id)
  where source is not null;
create index interactions_by_recommendation on interactions (organisation_id, recommendation_id, interaction_id)
  where recommendation_id is not null;

create table interaction_idempotency_keys (
  organisation_id uuid not null,
  idempotency_key text not null,
  body_sha256 bytea not null,
  interaction_id uuid not null,
  claimed_at timestamptz not null,
  primary key (organisation_id, idempotency_key)
);

create index interaction_idempotency_keys_by_age on interaction_idempotency_keys (claimed_at);

-- The smallest UUIDv7 of an instant.
create function uuid_floor(instant timestamptz) returns uuid
language sql immutable strict parallel safe as $$
  select rpad(lpad(to_hex((extract(epoch from instant) * 1000)::bigint), 12, '0'), 32, '0')::uuid
$$;

-- Makes the partitions of last month (a clock may be behind), this month and the months ahead. It runs as the owner, so
-- that the service may call it without the right to create tables. Attaching a table that is already made takes a lock
-- that lets reads and writes go on, which creating a partition in place would not.
create function ensure_interaction_partitions(months_ahead integer) returns void
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set timezone = 'UTC' set lock_timeout = '2s' as $$
declare
  month timestamptz;
  partition text;
begin
  if months_ahead not between 1 and 24 then
    raise exception 'months_ahead must be from 1 to 24';
  end if;
  perform pg_advisory_xact_lock(hashtext('ensure_interaction_partitions'));
  for month in
    select generate_series(date_trunc('month', now()) - interval '1 month',
                           date_trunc('month', now()) + make_interval(months => months_ahead), interval '1 month')
  loop
    partition := 'interactions_' || to_char(month, 'YYYY_MM');
    continue when to_regclass('public.' || partition) is not null;
    execute format('create table public.%I (like public.interactions including defaults including indexes)', partition);
    execute format('alter table public.interactions attach partition public.%I for values from (%L) to (%L)',
                   partition, public.uuid_floor(month), public.uuid_floor(month + interval '1 month'));
  end loop;
end
$$;

select ensure_interaction_partitions(6);
