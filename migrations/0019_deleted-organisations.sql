-- Deleting organisations. A deleted one keeps its rows, and can be restored, for as long as the service's setting says. Then
-- maintenance removes it step by step.
set local lock_timeout = '3s';

alter table organisations
  -- When set, all its keys are refused.
  add column deleted_at timestamptz,
  -- From then on it cannot be restored.
  add column removal_started_at timestamptz;

create index organisations_deleted on organisations (deleted_at) where deleted_at is not null;

-- How far a removal has got. In a cluster it is on the node that has the organisation's rows, so that a step that removes rows and
-- notes it is one transaction there.
create table removals (
  organisation_id uuid primary key,
  -- Counts the steps: a process that has read an older one does nothing.
  step bigint not null default 0,
  -- The table, and which of its partitions; the table itself if it has none.
  table_name text,
  part text,
  -- The key of the last row that was removed from the part; null if nothing is left in it.
  after text[],
  -- How many rows were removed from each table.
  rows jsonb not null default '{}',
  stepped_at timestamptz not null default now()
);

-- The tables with data of organisations, without those that go last, in finish_removal, and old partitions that are about to be
-- dropped. What a cluster keeps on its coordinator goes last too: rows are removed on the node that has the others.
create function organisation_tables() returns setof text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select c.relname::text from pg_class c
  join pg_attribute a on a.attrelid = c.oid and a.attname = 'organisation_id' and not a.attisdropped
  where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    and c.relname not in ('organisations', 'api_keys', 'audit_log', 'quota_usage', 'tenants', 'removals')
    and c.relname not like 'to\_drop\_%'
$$;

-- The service can remove nothing but what the operator has deleted: these functions run as the owner.

-- Starts the removal of an organisation that was deleted more than days_kept days ago. Returns false if it does not exist or was
-- restored. Whatever inserts rows of an organisation selects from tenants, so nothing can be added from here on. Nor does anything
-- else change its rows: its report is off, nothing of it expires or is measured, and nobody is erased from what goes altogether.
-- An error in a database that was restored, until after-restore has repeated what was restored since.
create function begin_removal(organisation uuid, days_kept integer) returns boolean
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set lock_timeout = '2s' as $$
begin
  if days_kept < 1 then
    raise exception 'days_kept must be 1 or more';
  end if;
  perform public.keys_can_be_trusted();
  update public.organisations set removal_started_at = now(), recommendations_report = false,
    interactions_kept_days = null, receipts_kept_days = null, rejections_kept_days = null,
    records_stored_max = null, bytes_stored_max = null
  where organisation_id = organisation and removal_started_at is null
    and deleted_at < now() - make_interval(days => days_kept);
  if not found then
    return false;
  end if;
  insert into public.removals (organisation_id) values (organisation);
  delete from public.erasures where organisation_id = organisation and state in ('pending', 'running');
  delete from public.tenants where organisation_id = organisation;
  return true;
end
$$;

-- Removes the next rows of a part, at most rows_max, and notes it. Returns how many; null if another process has done this step,
-- or the part is gone. The rows are found along the primary key, from the last that was removed: those that were removed before,
-- and that vacuum has yet to clean up, are not read again. A table without further columns in its key has few rows.
create function remove_rows(organisation uuid, expected bigint, wanted text, rows_max integer) returns bigint
language plpgsql security definer set search_path = pg_catalog, public, pg_temp
  set enable_seqscan = off set datestyle = 'ISO' set timezone = 'UTC' as $$
declare
  relation oid := to_regclass(format('public.%I', wanted));
  progress record;
  named text;
  names text[];
  types text[];
  above text := '';
  until text := '';
  bound text[];
  removed bigint;
begin
  select r.step, r.part, r.after into progress from public.removals r
  where r.organisation_id = organisation for update;
  if not found or progress.step <> expected or relation is null then
    return null;
  end if;
  select coalesce((select p.relname from pg_inherits i join pg_class p on p.oid = i.inhparent where i.inhrelid = c.oid), c.relname)
  into named from pg_class c where c.oid = relation;
  if not exists (select from pg_attribute where attrelid = relation and attname = 'organisation_id' and not attisdropped)
    or named in ('organisations', 'api_keys', 'audit_log', 'quota_usage', 'tenants', 'removals') then
    raise exception 'not a table with data of organisations: %', wanted;
  end if;
  select array_agg(a.attname::text order by k.at), array_agg(format_type(a.atttypid, a.atttypmod) order by k.at)
  into names, types
  from pg_index i cross join unnest(i.indkey) with ordinality as k(attnum, at)
  join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
  where i.indrelid = relation and i.indisprimary and k.at <= i.indnkeyatts and a.attname <> 'organisation_id';
  if names is not null then
    if progress.part = wanted and progress.after is not null then
      above := 'and ' || key_compared(names, types, '>', progress.after);
    end if;
    execute format('select array[%s] from public.%I where organisation_id = $1 %s order by %s offset %s limit 1',
                   (select string_agg(format('%I::text', k.name), ', ' order by k.at) from unnest(names) with ordinality as k(name, at)),
                   wanted, above,
                   (select string_agg(format('%I', k.name), ', ' order by k.at) from unnest(names) with ordinality as k(name, at)),
                   greatest(rows_max, 1) - 1)
    into bound using organisation;
    if bound is not null then
      until := 'and ' || key_compared(names, types, '<=', bound);
    end if;
  end if;
  execute format('delete from public.%I where organisation_id = $1 %s %s', wanted, above, until) using organisation;
  get diagnostics removed = row_count;
  update public.removals r
  set step = r.step + 1, stepped_at = now(), table_name = named, part = wanted, after = bound,
    rows = jsonb_set(r.rows, array[named], to_jsonb(coalesce((r.rows->>named)::bigint, 0) + removed))
  where r.organisation_id = organisation;
  return removed;
end
$$;

-- A condition that compares the columns of a key with values. They are written out, so that PostgreSQL knows how few rows are
-- between two of them.
create function key_compared(names text[], types text[], comparison text, key text[]) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select format('(%s) %s (%s)', string_agg(format('%I', k.name), ', ' order by k.at), comparison,
                string_agg(format('%L::%s', k.value, k.type), ', ' order by k.at))
  from unnest(names, types, key) with ordinality as k(name, type, value, at)
$$;

-- Removes what names the organisation elsewhere, a thousand rows at a time; returns whether it is gone. The log keeps that it was
-- deleted, restored and removed. Of every other entry only who did what and when is kept.
create function finish_removal(organisation uuid) returns boolean
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set lock_timeout = '2s' as $$
declare
  short_name text;
  removed jsonb;
  keys text[];
begin
  select o.slug into short_name from public.organisations o
  where o.organisation_id = organisation and o.removal_started_at is not null for update;
  if not found then
    return true;
  end if;
  select r.rows into removed from public.removals r where r.organisation_id = organisation;
  if exists (select from public.organisation_tables() as t(name) where (removed ? t.name) is not true) then
    raise exception 'the organisation still has rows';
  end if;
  update public.audit_log a set organisation_id = null, key_id = null,
    details = case when a.act in ('organisation.delete', 'organisation.restore') then a.details else '{}' end
  where a.audit_id in (
    select e.audit_id from public.audit_log e where e.organisation_id = organisation order by e.audit_id limit 1000);
  if found then
    return false;
  end if;
  select array_agg(k.key_id) into keys from (
    select key_id from public.api_keys where organisation_id = organisation order by key_id limit 1000) k;
  if keys is not null then
    update public.api_keys set successor_of = null where successor_of = any (keys);
    delete from public.console_sessions where key_id = any (keys);
    delete from public.console_links where key_id = any (keys);
    delete from public.api_keys where key_id = any (keys);
    return false;
  end if;
  insert into public.audit_log (actor, act, details) values ('maintenance', 'organisation.remove',
    jsonb_build_object('slug', short_name, 'organisation_id', organisation, 'rows', removed));
  delete from public.removals where organisation_id = organisation;
  delete from public.quota_usage where organisation_id = organisation;
  delete from public.organisations where organisation_id = organisation;
  return true;
end
$$;

revoke execute on function organisation_tables, begin_removal, remove_rows, key_compared, finish_removal from public;

-- The log still only grows, but for one thing: the entries of an organisation that is being removed are emptied.
create function refuse_update() returns trigger
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
  if new.organisation_id is null and new.key_id is null and (new.details = '{}' or new.details = old.details)
    and (new.audit_id, new.at, new.actor, new.act, new.request_id)
      is not distinct from (old.audit_id, old.at, old.actor, old.act, old.request_id)
    and exists (
      select from public.organisations o
      where o.organisation_id = old.organisation_id and o.removal_started_at is not null) then
    return new;
  end if;
  raise exception '% only grows: its rows cannot be changed or removed', tg_table_name;
end
$$;

create trigger audit_log_is_not_changed before update on audit_log
  for each row execute function refuse_update();

-- Updates are refused row by row from here on.
create or replace function refuse_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    return null;
  end if;
  raise exception '% only grows: its rows cannot be changed or removed', tg_table_name;
end
$$;

create function look_up_key(wanted text) returns table (
  organisation_id uuid,
  key_sha256 bytea,
  permissions text[],
  browser_origins text[],
  revoked boolean,
  ends_in_ms double precision,
  suspended boolean,
  deleted boolean,
  requests_per_second_max integer,
  interactions_per_second_max integer,
  records_per_second_max integer,
  bytes_in_flight_max integer
)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
  select o.organisation_id, k.key_sha256, k.permissions, k.browser_origins, k.revoked_at is not null,
    1000 * extract(epoch from k.expires_at - now())::double precision, o.suspended_at is not null, o.deleted_at is not null,
    o.requests_per_second_max, o.interactions_per_second_max, o.records_per_second_max, o.bytes_in_flight_max
  from api_keys k join organisations o using (organisation_id) where k.key_id = wanted and keys_can_be_trusted()
$$;

-- For processes of the release before: to them a deleted organisation is a suspended one.
create or replace function find_key(wanted text) returns table (
  organisation_id uuid,
  key_sha256 bytea,
  permissions text[],
  browser_origins text[],
  revoked boolean,
  ends_in_ms double precision,
  suspended boolean,
  requests_per_second_max integer,
  interactions_per_second_max integer,
  records_per_second_max integer,
  bytes_in_flight_max integer
)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
  select k.organisation_id, k.key_sha256, k.permissions, k.browser_origins, k.revoked, k.ends_in_ms, k.suspended or k.deleted,
    k.requests_per_second_max, k.interactions_per_second_max, k.records_per_second_max, k.bytes_in_flight_max
  from look_up_key(wanted) k
$$;

revoke execute on function look_up_key from public;
