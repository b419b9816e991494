-- The audit log survives restores: entries are imported again, the age of its newest backup is known, and a day's console
-- links take one entry.
set local lock_timeout = '3s';

create or replace function keys_can_be_trusted() returns boolean
language plpgsql stable security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  if recovery_target() is not null and not exists (select from restores where target = recovery_target()) then
    raise exception using errcode = 'IN001',
      message = 'the database was restored; keys that were revoked and people who were erased since would be back until intake-server after-restore has run, with the audit log and the ledger of erased people';
  end if;
  if exists (select from restores where looks_for_people) then
    raise exception using errcode = 'IN001',
      message = 'the database was restored; people who had been erased are being looked for, and keys work again when that is done';
  end if;
  return true;
end
$$;

-- When an entry was imported after a restore. Such entries come from a file, so they are only as reliable as the file.
alter table audit_log add column imported_at timestamptz;

-- One entry counts the links that an actor made for an organisation on a day.
create unique index audit_log_links on audit_log (organisation_id, actor, (details ->> 'day'), (details ->> 'read_only'))
  where act = 'console.links';

-- Earlier versions write no such entries.
update schema_compatibility set oldest_code = 1;

-- Entries change in two ways: those of an organisation that is being removed are emptied, and a count of links grows.
create function refuse_audit_update() returns trigger
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
  if (new.audit_id, new.at, new.actor, new.act, new.request_id, new.imported_at)
    is distinct from (old.audit_id, old.at, old.actor, old.act, old.request_id, old.imported_at) then
    null;
  elsif new.organisation_id is null and new.key_id is null and (new.details = '{}' or new.details = old.details)
    and exists (
      select from public.organisations o
      where o.organisation_id = old.organisation_id and o.removal_started_at is not null) then
    return new;
  elsif old.act = 'console.links' and new.organisation_id = old.organisation_id and new.key_id is null
    and new.details - 'links' = old.details - 'links'
    and (new.details ->> 'links')::bigint >= (old.details ->> 'links')::bigint then
    return new;
  end if;
  raise exception '% only grows: its rows cannot be changed or removed', tg_table_name;
end
$$;

create or replace trigger audit_log_is_not_changed before update on audit_log
  for each row execute function refuse_audit_update();

-- The operator may not update the log, so this function runs as the owner.
create function count_console_link(wanted_actor text, organisation uuid, is_read_only boolean) returns void
language sql security definer set search_path = pg_catalog, public, pg_temp as $$
  insert into public.audit_log as a (actor, act, organisation_id, details)
  values (wanted_actor, 'console.links', organisation,
    jsonb_build_object('day', to_char(now() at time zone 'UTC', 'YYYY-MM-DD'), 'read_only', is_read_only, 'links', 1))
  on conflict (organisation_id, actor, (details ->> 'day'), (details ->> 'read_only')) where act = 'console.links'
  do update set details = jsonb_set(a.details, '{links}', to_jsonb((a.details ->> 'links')::bigint + 1))
$$;

-- Keeps the ids of the entries that will be imported free. The limit keeps a damaged file from using up all ids.
create function reserve_audit_ids(newest bigint) returns void
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  ids text := pg_get_serial_sequence('public.audit_log', 'audit_id');
  last bigint := nextval(ids);
begin
  if newest > last + 1000000000 then
    raise exception 'these ids are not from the audit log of this database';
  end if;
  if newest > last then
    perform setval(ids, newest);
  end if;
end
$$;

-- Adds the entries that the log lacks, with their own times, and returns how many. An entry keeps its id unless another entry
-- has it.
create function import_audit_entries(entries jsonb) returns integer
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  e record;
  added integer := 0;
begin
  for e in
    select i.audit_id, i.at, i.actor, i.act, i.key_id, i.request_id, o.organisation_id,
      case when i.organisation is not null and o.organisation_id is null
        then coalesce(i.details, '{}') || jsonb_build_object('organisation', i.organisation)
        else coalesce(i.details, '{}') end as details
    from jsonb_to_recordset(entries) as i(audit_id bigint, at timestamptz, actor text, act text, organisation text,
      organisation_is_lost boolean, key_id text, request_id uuid, details jsonb)
    left join public.organisations o on o.slug = i.organisation and i.organisation_is_lost is not true
    order by i.audit_id
  loop
    if e.act = 'console.links' then
      update public.audit_log a
      set details = jsonb_set(a.details, '{links}', e.details -> 'links')
      where a.act = e.act and a.organisation_id = e.organisation_id and a.actor = e.actor
        and a.details - 'links' = e.details - 'links' and (a.details ->> 'links')::bigint < (e.details ->> 'links')::bigint;
      continue when found or exists (
        select from public.audit_log a
        where a.act = e.act and a.organisation_id = e.organisation_id and a.actor = e.actor
          and a.details - 'links' = e.details - 'links');
    end if;
    if exists (select from public.audit_log a where a.audit_id = e.audit_id) then
      continue when exists (
        select from public.audit_log a
        where (a.audit_id = e.audit_id or a.imported_at is not null) and a.act = e.act and a.actor = e.actor
          and date_trunc('milliseconds', a.at) = date_trunc('milliseconds', e.at));
      e.audit_id := nextval(pg_get_serial_sequence('public.audit_log', 'audit_id'));
    end if;
    insert into public.audit_log (audit_id, at, actor, act, organisation_id, key_id, request_id, details, imported_at)
      overriding system value
      values (e.audit_id, e.at, e.actor, e.act, e.organisation_id, e.key_id, e.request_id, e.details, now());
    added := added + 1;
  end loop;
  return added;
end
$$;

revoke execute on function count_console_link, reserve_audit_ids, import_audit_entries from public;

-- When intake-server backup-log last wrote the audit log and the ledger of erased people.
create table log_backups (
  is_only boolean primary key default true check (is_only),
  created_at timestamptz not null default now(),
  written_at timestamptz
);
insert into log_backups default values;
