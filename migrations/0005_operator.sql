-- What the operator decides about an organisation and a key, and a record of every such decision.

-- While this waits for a table that somebody reads, whoever comes after waits too: rather give up and be run again.
set local lock_timeout = '3s';

alter table organisations
  -- Set: all its keys are refused.
  add column suspended_at timestamptz,
  -- Null: the service's setting.
  add column requests_per_second_max integer,
  add column interactions_per_second_max integer,
  add column records_per_second_max integer,
  add column bytes_in_flight_max integer,
  -- The transaction that changed it last. Every process asks for what changed since it asked before, and by the clock it
  -- would miss what is committed after something that began later.
  add column changed_in xid8 not null default pg_current_xact_id();

alter table api_keys
  add column label text,
  add column created_by text not null default 'unknown',
  add column successor_of text references api_keys,
  add column last_used_at timestamptz,
  add column changed_in xid8 not null default pg_current_xact_id();

-- Whoever changes them, and by whichever version of the program or statement.
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

create index organisations_changed on organisations (changed_in);
create index api_keys_changed on api_keys (changed_in);
drop index api_keys_of_organisation;
create index api_keys_by_organisation on api_keys (organisation_id, key_id);

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
  raise exception '% only grows: what was done stays written', tg_table_name;
end
$$;

create trigger audit_log_only_grows before update or delete or truncate on audit_log
  for each statement execute function refuse_change();

-- The role that serves has no right on api_keys: it can ask for one key by its id, for the ids of those that changed, and
-- say which were used. It can change nothing about them, and read no label, no date and no name.

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
  from api_keys k join organisations o using (organisation_id) where k.key_id = wanted
$$;

create function changed_api_keys(since xid8) returns table (key_id text, organisation_id uuid, changed_in xid8)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
  -- None that is yet to come: a copy from another server may bring its numbers along.
  select k.key_id, null::uuid, k.changed_in from api_keys k
  where k.changed_in >= since and k.changed_in < pg_snapshot_xmax(pg_current_snapshot())
  union all
  select null, o.organisation_id, o.changed_in from organisations o
  where o.changed_in >= since and o.changed_in < pg_snapshot_xmax(pg_current_snapshot())
$$;

-- Skips what another process writes at this moment, and what was written within the minute.
create function note_api_keys_used(used text[]) returns void
language sql security definer set search_path = pg_catalog, public, pg_temp as $$
  update api_keys k set last_used_at = now() from (
    select key_id from api_keys
    where key_id = any (used) and (last_used_at > now() - interval '1 minute') is not true
    for no key update skip locked
  ) due where k.key_id = due.key_id
$$;

revoke execute on function
  find_api_key, changed_api_keys, note_api_keys_used,
  ensure_interaction_partitions, ensure_weekly_partitions, drop_weekly_partition from public;
