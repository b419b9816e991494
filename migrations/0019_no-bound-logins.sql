-- A login for SQL can no longer be bound to one organisation. With `explain (analyze)` such a login could bisect the values
-- of other organisations: PostgreSQL runs comparisons that it calls leakproof before the filter by organisation. And any
-- login can take the advisory locks of the service.
-- Later statements on these views and on organisations queue behind the locks taken here, so fail fast and retry.
set local lock_timeout = '3s';

-- The audit log then shows when each binding ended: the trigger records it.
delete from analysts;
drop schema analytics cascade;
drop view analyst_organisation;
drop table analysts;
drop function note_analyst;

-- The role stays: other databases of the server may use it, and logins that were members of it can now read nothing.
do $$ begin
  if to_regrole('intake_read') is not null then
    revoke all on schema public from intake_read;
  end if;
end $$;

update schema_compatibility set oldest_code = 18;
