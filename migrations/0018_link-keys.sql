-- The keys behind links to the console are removed when they have ended; otherwise each link would leave one behind.
set local lock_timeout = '3s';

-- The audit log only grows, so it keeps the ids of keys that are gone.
alter table audit_log drop constraint audit_log_key_id_fkey;

-- Such a key has no text that anybody could send: in place of a hash it has zeros, which no text hashes to.
create index api_keys_of_links on api_keys (expires_at) where key_sha256 = decode(repeat('00', 32), 'hex');

-- Removes at most a thousand, and the next call more. A key that was rotated stays, because its successor refers to it.
create function remove_link_keys() returns void
language sql security definer set search_path = pg_catalog, public, pg_temp as $$
  delete from public.api_keys where key_id in (
    select k.key_id from public.api_keys k
    where k.key_sha256 = decode(repeat('00', 32), 'hex') and k.expires_at <= now()
      and not exists (select from public.api_keys s where s.successor_of = k.key_id)
    limit 1000 for update of k skip locked)
$$;

create or replace function begin_console_session(token bytea, key text) returns timestamptz
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
  perform public.remove_link_keys();
  return ends;
end
$$;

-- The key of a link is for one session, so it ends when that session does.
create or replace function use_console_link(token bytea) returns text
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare used record;
begin
  delete from public.console_links where token_sha256 = token returning * into used;
  delete from public.console_links where expires_at <= now();
  update public.api_keys k set expires_at = least(k.expires_at, now() + interval '12 hours')
  where k.key_id = used.key_id;
  return case when used.expires_at > now() then used.key_id end;
end
$$;

create or replace function end_console_session(token bytea) returns void
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare ended text;
begin
  delete from public.console_sessions where token_sha256 = token returning key_id into ended;
  update public.api_keys k set expires_at = now()
  where k.key_id = ended and k.key_sha256 = decode(repeat('00', 32), 'hex') and k.expires_at > now();
  perform public.remove_link_keys();
end
$$;

revoke execute on function remove_link_keys from public;
