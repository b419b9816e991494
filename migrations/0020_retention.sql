-- Retention: for how many days an organisation keeps what it was sent. Days are those of receipt, in UTC, and a day expires as
-- a whole. Without a setting, interactions stay for good, and receipts and rejections as long as the service keeps them.
set local lock_timeout = '3s';
-- In a cluster, a table that is altered on all nodes at once could not be followed by a function.
set local citus.multi_shard_modify_mode = 'sequential';

alter table organisations
  add column interactions_kept_days integer,
  add column receipts_kept_days integer,
  add column rejections_kept_days integer;

-- How far each organisation has got. Rejections have no row here: the service may delete them, and they are few.
create table retention_progress (
  organisation_id uuid not null,
  -- interactions or receipts.
  type text not null,
  -- Everything with a smaller id has expired.
  expired_below uuid not null,
  -- Everything with a smaller id has been deleted.
  deleted_below uuid not null default '00000000-0000-0000-0000-000000000000',
  -- While the two differ: since when.
  waiting_since timestamptz not null,
  primary key (organisation_id, type)
);

create index retention_due on retention_progress (organisation_id, type) where deleted_below < expired_below;

-- Deleting is done by functions of the owner: the service has no right to delete these rows. They delete nothing but what has
-- expired by the settings of the operator, whatever they are called with. `at` is the time to compare with, null for now; it
-- cannot be in the future.

-- Notes for every organisation with a setting what has expired by now; one that is being removed loses everything anyway. An
-- error in a database that was restored, until after-restore has repeated the settings. Runs on the coordinator of a cluster.
create function begin_expiry(at timestamptz) returns void
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set timezone = 'UTC' as $$
begin
  if at > now() then
    raise exception 'nothing expires before its time';
  end if;
  perform public.keys_can_be_trusted();
  insert into public.retention_progress as p (organisation_id, type, expired_below, waiting_since)
  select w.organisation_id, w.type, w.expired_below, now() from (
    select o.organisation_id, k.type,
      public.uuid_floor(date_trunc('day', coalesce(at, now()) - make_interval(days => k.days))) as expired_below
    from public.organisations o cross join lateral (
      values ('interactions', o.interactions_kept_days), ('receipts', o.receipts_kept_days)) as k(type, days)
    where k.days is not null and o.removal_started_at is null) as w
  -- On most runs nothing is new. A cluster reads what has an offset in a statement of its own, and joins it with its own table.
  left join (select q.organisation_id, q.type, q.expired_below from public.retention_progress q offset 0) as noted
    on noted.organisation_id = w.organisation_id and noted.type = w.type
  where noted.expired_below is distinct from w.expired_below
  on conflict (organisation_id, type) do update set expired_below = excluded.expired_below,
    waiting_since = case when p.deleted_below < p.expired_below then p.waiting_since else excluded.waiting_since end;
end
$$;

-- The smallest id of the next step: about rows_max rows are before it. A step ends between two milliseconds, so that an instant
-- says what is left.
create function end_of_step(first_id uuid, id uuid, end_id uuid) returns uuid
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select case
    when id is null then end_id
    -- More ids of one millisecond than a step should have: they go together.
    when first_of_ms <= first_id
      then rpad(lpad(to_hex(('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint + 1), 12, '0'), 32, '0')::uuid
    else first_of_ms
  end
  from (select (left(id::text, 13) || '-0000-0000-000000000000')::uuid) as ms(first_of_ms)
$$;

-- Deletes the next expired interactions of an organisation, and enters that in the counts and the change log; returns whether
-- there may be more. The entry of the log has the size 0 and one id: everything of its type with a smaller id is gone. Older
-- code skips entries of that size. A plan for all ids would lock every day.
create function expire_interactions(organisation uuid, entry uuid, rows_max integer) returns boolean
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set plan_cache_mode = 'force_custom_plan' as $$
declare
  first_id uuid;
  end_id uuid;
  next_id uuid;
  deleted bigint;
begin
  select p.deleted_below, p.expired_below into first_id, end_id from public.retention_progress p
  where p.organisation_id = organisation and p.type = 'interactions' for update;
  -- An organisation that is being removed has no tenant any more, and gets no row.
  if not found or first_id >= end_id or not exists (select from public.tenants t where t.organisation_id = organisation) then
    return false;
  end if;
  select i.interaction_id into next_id from public.interactions i
  where i.organisation_id = organisation and i.interaction_id >= first_id and i.interaction_id < end_id
  order by i.interaction_id offset rows_max limit 1;
  next_id := public.end_of_step(first_id, next_id, end_id);
  delete from public.interactions i
  where i.organisation_id = organisation and i.interaction_id >= first_id and i.interaction_id < next_id;
  get diagnostics deleted = row_count;
  update public.retention_progress p set deleted_below = next_id
  where p.organisation_id = organisation and p.type = 'interactions';
  if deleted > 0 then
    insert into public.record_count_changes (organisation_id, type, records)
    values (organisation, 'interactions', -deleted);
    insert into public.changes (organisation_id, change_id, type, size, ids)
    values (organisation, entry, 'interactions', 0, array[next_id]);
  end if;
  return next_id < end_id;
end
$$;

-- Deletes the next expired receipts of an organisation, with their answers; returns whether there may be more.
create function expire_receipts(organisation uuid, rows_max integer) returns boolean
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set plan_cache_mode = 'force_custom_plan' as $$
declare
  first_id uuid;
  end_id uuid;
  next_id uuid;
begin
  select p.deleted_below, p.expired_below into first_id, end_id from public.retention_progress p
  where p.organisation_id = organisation and p.type = 'receipts' for update;
  -- An organisation that is being removed has no tenant any more, and gets no row.
  if not found or first_id >= end_id or not exists (select from public.tenants t where t.organisation_id = organisation) then
    return false;
  end if;
  select r.request_id into next_id from public.receipts r
  where r.organisation_id = organisation and r.request_id >= first_id and r.request_id < end_id
  order by r.request_id offset rows_max limit 1;
  next_id := public.end_of_step(first_id, next_id, end_id);
  delete from public.receipts r
  where r.organisation_id = organisation and r.request_id >= first_id and r.request_id < next_id;
  delete from public.receipt_batches b
  where b.organisation_id = organisation and b.request_id >= first_id and b.request_id < next_id;
  update public.retention_progress p set deleted_below = next_id
  where p.organisation_id = organisation and p.type = 'receipts';
  return next_id < end_id;
end
$$;

-- Whether one of these organisations keeps interactions with ids below end_id.
create function keep_interactions(owners uuid[], end_id uuid, at timestamptz) returns boolean
language sql stable set search_path = pg_catalog, public, pg_temp set timezone = 'UTC' as $$
  select exists (
    select from unnest(owners) as w(organisation_id)
    left join public.organisations o on o.organisation_id = w.organisation_id
    where (public.uuid_floor(date_trunc('day', coalesce(at, now()) - make_interval(days => o.interactions_kept_days))) >= end_id)
      is not true)
$$;

-- Detaches a day of interactions that has expired for every organisation with rows in it, enters that in the counts and the
-- change log, and renames it for drop_detached_interactions; returns false if somebody keeps it. It is checked under locks that
-- let nobody write to the day or change a setting. The day alone is locked while its rows are counted: meanwhile, an operator can
-- suspend an organisation. Detaching locks the parent too, which is short. Runs on the coordinator of a cluster.
create function detach_expired_interactions(partition text, entry uuid, at timestamptz) returns boolean
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set timezone = 'UTC' set lock_timeout = '2s' as $$
declare
  last_id uuid;
  owners uuid[];
  counts bigint[];
begin
  if at > now() then
    raise exception 'nothing expires before its time';
  end if;
  -- In a cluster, rows that were written on all nodes at once could not be followed by a detached table.
  perform set_config('citus.multi_shard_modify_mode', 'sequential', true);
  -- ensure_interaction_partitions makes the last two days again each hour.
  select p.end_id into last_id from public.interaction_partitions p
  where p.name = partition and p.end_id <= public.uuid_floor(date_trunc('day', now()) - interval '2 days')
  for update skip locked;
  if not found then
    return false;
  end if;
  -- Without a lock first: most days are kept by somebody.
  execute format('select array_agg(organisation_id) from (select organisation_id from public.%I group by organisation_id) d',
                 partition) into owners;
  if public.keep_interactions(owners, last_id, at) then
    return false;
  end if;
  execute format('lock table public.%I in share row exclusive mode', partition);
  execute format('select array_agg(organisation_id), array_agg(expired)
                  from (select organisation_id, count(*) as expired from public.%I group by organisation_id) d',
                 partition) into owners, counts;
  perform from public.organisations o where o.organisation_id = any (owners) order by o.organisation_id for share;
  if public.keep_interactions(owners, last_id, at) then
    return false;
  end if;
  insert into public.record_count_changes (organisation_id, type, records)
  select d.organisation_id, 'interactions', -d.expired from unnest(owners, counts) as d(organisation_id, expired);
  insert into public.changes (organisation_id, change_id, type, size, ids)
  select d.organisation_id, entry, 'interactions', 0, array[last_id] from unnest(owners) as d(organisation_id);
  execute format('alter table public.interactions detach partition public.%I', partition);
  execute format('alter table public.%I rename to %I', partition, 'to_drop_' || partition);
  delete from public.interaction_partitions p where p.name = partition;
  return true;
end
$$;

create function drop_detached_interactions(partition text) returns void
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set lock_timeout = '2s' as $$
begin
  if partition !~ '^to_drop_interactions_\d{4}_\d\d_\d\d$' then
    raise exception 'not a detached day of interactions: %', partition;
  end if;
  if pg_try_advisory_xact_lock(hashtext(partition)) and to_regclass('public.' || partition) is not null then
    execute format('drop table public.%I', partition);
  end if;
end
$$;

revoke execute on function begin_expiry, end_of_step, expire_interactions, expire_receipts, keep_interactions,
  detach_expired_interactions, drop_detached_interactions from public;
