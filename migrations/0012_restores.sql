-- A database that was restored to an earlier moment has forgotten which keys were revoked since. It gives out no key until
-- an operator has seen to that.
create table restores (
  -- The moment that PostgreSQL was told to recover to, as it is written in its settings.
  target text primary key,
  confirmed_at timestamptz not null default now()
);

create function recovery_target() returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select nullif(concat_ws(' ', nullif(current_setting('recovery_target'), ''),
    nullif(current_setting('recovery_target_time'), ''), nullif(current_setting('recovery_target_xid'), ''),
    nullif(current_setting('recovery_target_lsn'), ''), nullif(current_setting('recovery_target_name'), '')), '')
$$;

-- True, or an error that says what to do. A second restore to the same time, transaction or place in the log brings no
-- confirmation along, for that was written later. One to a name or to 'immediate' can, from a backup made after it.
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

create or replace function find_api_key(wanted text) returns table (
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

revoke execute on function keys_can_be_trusted from public;
