-- When the service wrote a record, by its own clock: what `stored_since` asks for.
alter table customers add column stored_at timestamptz not null default now();
alter table transactions add column stored_at timestamptz not null default now();
alter table offers add column stored_at timestamptz not null default now();
alter table shops add column stored_at timestamptz not null default now();
alter table branches add column stored_at timestamptz not null default now();
alter table categories add column stored_at timestamptz not null default now();
alter table shop_categories add column stored_at timestamptz not null default now();
alter table institutes add column stored_at timestamptz not null default now();
alter table courses add column stored_at timestamptz not null default now();
alter table tags add column stored_at timestamptz not null default now();
alter table shop_tags add column stored_at timestamptz not null default now();
alter table keywords add column stored_at timestamptz not null default now();
alter table shop_keywords add column stored_at timestamptz not null default now();
alter table student_favourites add column stored_at timestamptz not null default now();

-- What became of each upload. A row is written with the first batch that is stored and added to by each later one, in
-- the batch's own transaction: a receipt and its records are there together or not at all.
create table receipts (
  organisation_id uuid not null,
  -- A UUIDv7: its first 48 bits are the time of receipt, and find the partition.
  request_id uuid not null,
  -- Null for a replay of rejections of several types.
  type text,
  operation text not null,
  -- Of the batches so far.
  status smallint not null,
  key_id text not null,
  idempotency_key text,
  body_bytes integer not null,
  duration_ms integer not null,
  -- How many batches there are to be, and the numbers of those that are stored.
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

-- The answers, as they were given: apart, for one with many errors is large, and what is added to is written anew.
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

-- Records that were refused, each with what was wrong with it, until they are put right, discarded or old.
create table rejections (
  organisation_id uuid not null,
  -- A UUIDv7: the time of refusal.
  rejection_id uuid not null,
  type text not null,
  request_id uuid not null,
  -- Where the record stood among those of its request.
  index integer not null,
  record_id uuid,
  -- JSON as it was sent, or as it would have been stored; null where it was too large to keep.
  record text,
  -- One element per bad field, of all three alike.
  fields text[] not null,
  codes text[] not null,
  messages text[] not null,
  primary key (organisation_id, rejection_id)
) partition by range (rejection_id);

create index rejections_by_type on rejections (organisation_id, type, rejection_id);
create index rejections_by_request on rejections (organisation_id, request_id, rejection_id);
create index rejections_by_record on rejections (organisation_id, type, record_id) where record_id is not null;

-- One row where an organisation may have rejections of a type: without one, an upload need not look for them.
create table open_rejections (
  organisation_id uuid not null,
  type text not null,
  seen_at timestamptz not null,
  primary key (organisation_id, type)
);

-- How much an organisation has: what was rolled up, and the differences since. One row that every upload changed would
-- make them queue.
create table record_counts (
  organisation_id uuid not null,
  type text not null,
  records bigint not null,
  rejections bigint not null,
  newest_updated timestamptz,
  last_upload timestamptz,
  primary key (organisation_id, type)
);

create table record_count_changes (
  organisation_id uuid not null,
  type text not null,
  records bigint not null,
  rejections bigint not null,
  newest_updated timestamptz,
  last_upload timestamptz
);

create index record_count_changes_of_organisation on record_count_changes (organisation_id);

-- What is stored already, counted once.
do $$
declare
  counted text;
begin
  foreach counted in array array['customers', 'transactions', 'offers', 'shops', 'branches', 'categories', 'shop_categories',
    'institutes', 'courses', 'tags', 'shop_tags', 'keywords', 'shop_keywords', 'student_favourites']
  loop
    execute format('insert into record_counts
      select organisation_id, %L, count(*), 0, max(updated), null from %I group by organisation_id',
      replace(counted, '_', '-'), counted);
  end loop;
end
$$;

-- Receipts and rejections are kept in partitions of a week, made ahead and dropped when they are old, by functions of
-- the owner, so that the service may call them without the right to create or drop tables. For attaching, see
-- ensure_interaction_partitions.
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
  foreach parent in array array['receipts', 'receipt_batches', 'rejections'] loop
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

-- Drops one table of a week that ended before so many days ago, the oldest first; false where there is none. One at
-- a time, so that nobody waits long, and for one parent only.
create function drop_weekly_partition(days_kept integer) returns boolean
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set timezone = 'UTC' set lock_timeout = '2s' as $$
declare
  parent text;
  partition regclass;
begin
  if days_kept < 7 then
    raise exception 'days_kept must be 7 or more';
  end if;
  perform pg_advisory_xact_lock(hashtext('ensure_weekly_partitions'));
  select inhparent::regclass::text, inhrelid::regclass into parent, partition from pg_inherits
  where inhparent in ('public.receipts'::regclass, 'public.receipt_batches'::regclass, 'public.rejections'::regclass)
    and to_date(right(inhrelid::regclass::text, 10), 'YYYY_MM_DD') + 7 <= (now() - make_interval(days => days_kept))::date
  order by right(inhrelid::regclass::text, 10) limit 1;
  if partition is null then
    return false;
  end if;
  -- What was rejected then is counted no longer; nobody may change it between the count and the drop.
  if parent = 'rejections' then
    execute format('lock table %s in access exclusive mode', partition);
    execute format('insert into public.record_count_changes (organisation_id, type, records, rejections)
      select organisation_id, type, 0, -count(*) from %s group by organisation_id, type', partition);
  end if;
  execute format('drop table %s', partition);
  return true;
end
$$;

select ensure_weekly_partitions(4);
