-- A removal is a job too, so its own row has to stay until it ends. The other jobs of the organisation end when the removal
-- begins. Serving processes may add and delete jobs anyway, so remove_rows need not refuse the table.

create or replace function organisation_tables() returns setof text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select c.relname::text from pg_class c
  join pg_attribute a on a.attrelid = c.oid and a.attname = 'organisation_id' and not a.attisdropped
  where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    and c.relname not in ('organisations', 'api_keys', 'audit_log', 'quota_usage', 'tenants', 'removals', 'jobs')
    and c.relname not like 'to\_drop\_%'
$$;

-- As before, but open erasures have the states of the engine for long work, and jobs end.
create or replace function begin_removal(organisation uuid, days_kept integer) returns boolean
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
  -- Jobs come first, because each step of a job locks it first.
  delete from public.jobs where organisation_id = organisation and kind <> 'removals';
  delete from public.erasures where organisation_id = organisation and state in ('requested', 'sweeping');
  delete from public.tenants where organisation_id = organisation;
  return true;
end
$$;

create or replace function finish_removal(organisation uuid) returns boolean
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
  delete from public.jobs where organisation_id = organisation;
  delete from public.removals where organisation_id = organisation;
  delete from public.quota_usage where organisation_id = organisation;
  delete from public.organisations where organisation_id = organisation;
  return true;
end
$$;
