-- The release before inferred people from interactions. What it has begun starts again without the people whom it inferred.
set local lock_timeout = '3s';
-- In a cluster, several statements on a table that is altered on all nodes in parallel fail in one transaction.
set local citus.multi_shard_modify_mode = 'sequential';

-- Processes of the release before look for the states 'pending' and 'running', so these states no longer occur.
alter table access_requests drop constraint access_requests_state_check;
delete from access_request_records c using access_requests r
where r.organisation_id = c.organisation_id and r.access_request_id = c.access_request_id
  and r.state in ('pending', 'running');
update access_requests set state = 'requested', started_at = null, records = '{}'
where state in ('pending', 'running');
alter table access_requests
  add constraint access_requests_state_check check (state in ('requested', 'collecting', 'done', 'expired')),
  alter column state set default 'requested';
delete from access_request_ids where is_inferred;

-- An erasure's ids were added by the transaction that requested it, and nothing says whether a later one added a user who was
-- only seen together with these people. So the later ones go, and the sweep adds the other ids of these people again. An
-- erasure that was repeated after a restore keeps all its ids, and so does one in a database that was copied as a dump, because
-- none of its suppressions has the transaction of its ids. In a cluster, these transactions are not known.
do $$
declare
  r record;
  request xid;
begin
  if exists (select from pg_extension where extname = 'citus') then
    return;
  end if;
  for r in select organisation_id, erasure_id from erasures where state = 'requested' and started_at is not null loop
    select i.xmin into request from erasure_ids i
    where i.organisation_id = r.organisation_id and i.erasure_id = r.erasure_id order by age(i.xmin) desc limit 1;
    continue when not exists (
      select from suppressions s
      where s.organisation_id = r.organisation_id and s.erasure_id = r.erasure_id and s.xmin = request);
    delete from suppressions s
    where s.organisation_id = r.organisation_id and s.erasure_id = r.erasure_id and s.xmin <> request;
    delete from erasure_ids i
    where i.organisation_id = r.organisation_id and i.erasure_id = r.erasure_id and i.xmin <> request;
  end loop;
end
$$;

-- Older versions read only the states that they know.
update schema_compatibility set oldest_code = 1;
