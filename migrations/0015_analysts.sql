-- Analysts read views, never tables. `migrate` makes the views from the record types, in two schemas with the same names:
-- `analytics` shows a login its own organisation, `analytics_all` shows every organisation.
create schema analytics;
create schema analytics_all;

-- Whose organisation the members of intake_read see: one each. By the role itself and not by its name: a login that is
-- dropped takes its right with it, and one that is given the same name later does not find it.
create table analysts (
  login regrole primary key,
  organisation_id uuid not null references organisations,
  bound_at timestamptz not null default now()
);

-- session_user is who logged in, whatever role is set since. While an organisation is suspended, its analysts see as
-- little of it as its keys do.
create view analyst_organisation with (security_barrier) as
select a.organisation_id
from public.analysts a join public.organisations o using (organisation_id)
where a.login = to_regrole(quote_ident(session_user)) and o.suspended_at is null;

-- Who may read what is decided in SQL, so it is the database that writes it down.
create function note_analyst() returns trigger
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
  if tg_op <> 'INSERT' then
    insert into audit_log (actor, act, organisation_id, details)
    values (session_user, 'analyst.unbind', old.organisation_id, jsonb_build_object('login', old.login::text));
  end if;
  if tg_op <> 'DELETE' then
    insert into audit_log (actor, act, organisation_id, details)
    values (session_user, 'analyst.bind', new.organisation_id, jsonb_build_object('login', new.login::text));
  end if;
  return null;
end
$$;

create trigger analysts_note after insert or update or delete on analysts
  for each row execute function note_analyst();
