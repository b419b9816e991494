-- Browser keys: every visitor of a web page can read such a key, so it only records interactions, and only from pages of
-- its origins.
set local lock_timeout = '3s';

-- Null for an ordinary key.
alter table api_keys add column browser_origins text[] check (
  browser_origins is null
  or (cardinality(browser_origins) between 1 and 10 and permissions = array['interactions:write'])
);

-- A trigger, because older code does not know the column: its rotation would turn a browser key into an ordinary one.
create function keep_browser_origins() returns trigger language plpgsql as $$
begin
  new.browser_origins := (select browser_origins from api_keys where key_id = new.successor_of);
  return new;
end
$$;
create trigger api_keys_keep_browser_origins before insert on api_keys
  for each row when (new.successor_of is not null) execute function keep_browser_origins();

create or replace trigger api_keys_note_change before update on api_keys
  for each row when (
    (old.organisation_id, old.key_sha256, old.permissions, old.revoked_at, old.expires_at, old.browser_origins)
    is distinct from
    (new.organisation_id, new.key_sha256, new.permissions, new.revoked_at, new.expires_at, new.browser_origins))
  execute function note_change();

create function find_key(wanted text) returns table (
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
  select o.organisation_id, k.key_sha256, k.permissions, k.browser_origins, k.revoked_at is not null,
    1000 * extract(epoch from k.expires_at - now())::double precision, o.suspended_at is not null,
    o.requests_per_second_max, o.interactions_per_second_max, o.records_per_second_max, o.bytes_in_flight_max
  from api_keys k join organisations o using (organisation_id) where k.key_id = wanted and keys_can_be_trusted()
$$;

-- For processes of the release before, which would treat a browser key as an ordinary one: to them it does not exist.
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
  select k.organisation_id, k.key_sha256, k.permissions, k.revoked, k.ends_in_ms, k.suspended,
    k.requests_per_second_max, k.interactions_per_second_max, k.records_per_second_max, k.bytes_in_flight_max
  from find_key(wanted) k where k.browser_origins is null
$$;

revoke execute on function find_key from public;
