-- The console: a key, or a link of the operator, is exchanged for a session, whose token is in a cookie. The service can write
-- neither keys nor sessions by itself; it calls these functions.
set local lock_timeout = '3s';

create table console_sessions (
  token_sha256 bytea primary key,
  -- Whose rights it has.
  key_id text not null,
  -- At the latest when the key does.
  expires_at timestamptz not null
);

create index console_sessions_by_key on console_sessions (key_id, expires_at);
create index console_sessions_by_age on console_sessions (expires_at);

-- A link can be used once.
create table console_links (
  token_sha256 bytea primary key,
  key_id text not null,
  expires_at timestamptz not null
);

-- Null if the key can no longer be used. Of one key the newest hundred sessions are kept.
create function begin_console_session(token bytea, key text) returns timestamptz
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare ends timestamptz;
begin
  insert into public.console_sessions (token_sha256, key_id, expires_at)
  select token, k.key_id, least(k.expires_at, now() + interval '12 hours') from public.api_keys k
  where k.key_id = key and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
  returning expires_at into ends;
  delete from public.console_sessions s where s.expires_at <= now();
  delete from public.console_sessions s where s.token_sha256 in (
    select n.token_sha256 from public.console_sessions n where n.key_id = key and n.token_sha256 <> token
    order by n.expires_at desc offset 99);
  return ends;
end
$$;

create function find_console_session(token bytea)
returns table (key_id text, expires_at timestamptz, label text, key_expires_at timestamptz, slug text, name text)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
  select s.key_id, s.expires_at, k.label, k.expires_at, o.slug, o.name
  from public.console_sessions s
  join public.api_keys k on k.key_id = s.key_id
  join public.organisations o on o.organisation_id = k.organisation_id
  where s.token_sha256 = token and s.expires_at > now()
$$;

create function end_console_session(token bytea) returns void
language sql security definer set search_path = pg_catalog, public, pg_temp as $$
  delete from public.console_sessions where token_sha256 = token
$$;

-- The key of the link; null if it was used before, or is too old.
create function use_console_link(token bytea) returns text
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare used record;
begin
  delete from public.console_links where token_sha256 = token returning * into used;
  delete from public.console_links where expires_at <= now();
  return case when used.expires_at > now() then used.key_id end;
end
$$;

revoke execute on function begin_console_session, find_console_session, end_console_session, use_console_link from public;
