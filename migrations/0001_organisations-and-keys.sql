-- Organisations, their keys, and a record of every decision the operator makes about them.

-- migrate compares this with the file, and refuses to continue if the file was changed after it ran.
alter table schema_migrations add column sha256 text;

-- Which code works with this schema: the number of the newest migration known to the oldest such code. A migration that
-- removes something older code uses raises it; CONTRIBUTING.md has the rule.
create table schema_compatibility (
  is_only boolean primary key default true check (is_only),
  oldest_code integer not null
);
insert into schema_compatibility (oldest_code) values (1);

-- Read before the organisation of a request is known, and small: this table, api_keys and audit_log are the only ones
-- whose keys do not begin with organisation_id.
create table organisations (
  organisation_id uuid primary key,
  slug text not null unique,
  name text not null,
  created_at timestamptz not null default now(),
  -- When set, all its keys are refused.
  suspended_at timestamptz,
  -- Null means the service's setting.
  requests_per_second_max integer,
  interactions_per_second_max integer,
  records_per_second_max integer,
  bytes_in_flight_max integer,
  -- Counting the report on recommendations costs more than storing, and few organisations read it.
  recommendations_report boolean not null default false,
  -- The transaction that changed the row last. Processes poll for changes by transaction id: polling by time would miss
  -- a change that commits after one that began later.
  changed_in xid8 not null default pg_current_xact_id()
);

create table api_keys (
  key_id text primary key,
  organisation_id uuid not null references organisations,
  -- SHA-256 of the whole key; the key itself is shown once, when it is issued, and stored nowhere.
  key_sha256 bytea not null,
  permissions text[] not null,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  -- Set when a successor is issued: until then both keys work.
  expires_at timestamptz,
  label text,
  created_by text not null default 'unknown',
  successor_of text references api_keys,
  last_used_at timestamptz,
  changed_in xid8 not null default pg_current_xact_id()
);

create index organisations_changed on organisations (changed_in);
create index api_keys_changed on api_keys (changed_in);
create index api_keys_by_organisation on api_keys (organisation_id, key_id);

-- A trigger, so that no version of the program and no statement by hand can forget it.
create function note_change() returns trigger language plpgsql as $$
begin
  new.changed_in := pg_current_xact_id();
  return new;
end
$$;

create trigger organisations_note_change before update on organisations
  for each row execute function note_change();
create trigger api_keys_note_change before update on api_keys
  for each row when ((old.organisation_id, old.key_sha256, old.permissions, old.revoked_at, old.expires_at)
    is distinct from (new.organisation_id, new.key_sha256, new.permissions, new.revoked_at, new.expires_at))
  execute function note_change();

create table audit_log (
  audit_id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  actor text not null,
  act text not null,
  organisation_id uuid references organisations,
  key_id text references api_keys,
  -- The request to the admin API that asked for it.
  request_id uuid,
  details jsonb not null
);

create index audit_log_by_organisation on audit_log (organisation_id, audit_id);

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% only grows: its rows cannot be changed or removed', tg_table_name;
end
$$;

create trigger audit_log_only_grows before update or delete or truncate on audit_log
  for each statement execute function refuse_change();

-- The ids of the organisations again: every statement on their data starts from this table. On Citus it is distributed
-- together with the data, so that such a statement runs on the one node that has the organisation. `organisations`
-- itself cannot be distributed: its slug is unique across organisations, and its changes are found by transaction id, and
-- each node has its own transaction ids.
create table tenants (organisation_id uuid primary key);

-- Runs as the owner, so that no other role needs the right to write here.
create function add_tenant() returns trigger
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  insert into public.tenants (organisation_id) values (new.organisation_id);
  if not found then
    raise exception 'the organisation was not added to tenants; try again';
  end if;
  return null;
end
$$;

create trigger organisations_add_tenant after insert on organisations
  for each row execute function add_tenant();

-- A database restored to an earlier moment no longer knows which keys were revoked since. It hands out no key until an
-- operator has repeated the revocations (after-restore).
create table restores (
  -- The recovery target as PostgreSQL's settings state it.
  target text primary key,
  confirmed_at timestamptz not null default now()
);

create function recovery_target() returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select nullif(concat_ws(' ', nullif(current_setting('recovery_target'), ''),
    nullif(current_setting('recovery_target_time'), ''), nullif(current_setting('recovery_target_xid'), ''),
    nullif(current_setting('recovery_target_lsn'), ''), nullif(current_setting('recovery_target_name'), '')), '')
$$;

-- True, or an error that says what to do. The confirmation is written after the recovery target, so a second restore to
-- the same time, transaction or log position does not contain it. A restore to a name or to 'immediate' can contain it,
-- if the backup was made later.
create function keys_can_be_trusted() returns boolean
language plpgsql stable security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  if recovery_target() is not null and not exists (select from restores where target = recovery_target()) then
    raise exception using errcode = 'IN001',
      message = 'the database was restored; keys that were revoked since would work again until intake-server after-restore has run';
  end if;
  return true;
end
$$;

-- The serving role has no right on api_keys. Through these functions it can look up one key by its id, poll for the ids
-- of changed ones, and note which were used. It can change nothing else about them, and read no label, date or name.

create function find_api_key(wanted text) returns table (
  organisation_id uuid,
  key_sha256 bytea,
  permissions text[],
  revoked boolean,
  ends_in_ms double precision,
  suspended boolean,
  requests_per_second_max integer,
  interactions_per_second_max integer,
  records_per_second_max integer,
  bytes_in_flight_max integer
)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
  select o.organisation_id, k.key_sha256, k.permissions, k.revoked_at is not null,
    1000 * extract(epoch from k.expires_at - now())::double precision, o.suspended_at is not null,
    o.requests_per_second_max, o.interactions_per_second_max, o.records_per_second_max, o.bytes_in_flight_max
  from api_keys k join organisations o using (organisation_id) where k.key_id = wanted and keys_can_be_trusted()
$$;

create function changed_api_keys(since xid8) returns table (key_id text, organisation_id uuid, changed_in xid8)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
  -- Rows copied from another server may carry transaction ids that this server has yet to reach: leave them out.
  select k.key_id, null::uuid, k.changed_in from api_keys k
  where k.changed_in >= since and k.changed_in < pg_snapshot_xmax(pg_current_snapshot())
  union all
  select null, o.organisation_id, o.changed_in from organisations o
  where o.changed_in >= since and o.changed_in < pg_snapshot_xmax(pg_current_snapshot())
$$;

-- Skips rows that another process is writing, and rows written within the last minute.
create function note_api_keys_used(used text[]) returns void
language sql security definer set search_path = pg_catalog, public, pg_temp as $$
  update api_keys k set last_used_at = now() from (
    select key_id from api_keys
    where key_id = any (used) and (last_used_at > now() - interval '1 minute') is not true
    for no key update skip locked
  ) due where k.key_id = due.key_id
$$;

revoke execute on function find_api_key, changed_api_keys, note_api_keys_used, keys_can_be_trusted from public;
