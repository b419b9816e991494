-- The ids of the organisations once more, for the statements on their data to begin with. Where the tables are distributed
-- by Citus, this one is too, and such a statement then runs whole on the node that has the organisation. `organisations`
-- itself cannot be distributed: its slug is unique among all, and what changed in it is asked by transaction ids, which
-- each node counts for itself.

-- While this waits for a table that somebody reads, whoever comes after waits too: rather give up and be run again.
set local lock_timeout = '3s';

create table tenants (organisation_id uuid primary key);

-- Whoever adds an organisation, by whichever version of the program. It runs as the owner, so that nobody else needs a
-- right to write here.
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

insert into tenants (organisation_id) select organisation_id from organisations;
