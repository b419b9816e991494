-- After a restore, keys work again when the customers who had been erased are hidden again.
set local lock_timeout = '3s';
-- In a cluster, a table that is altered on all nodes at once could not be followed by a function.
set local citus.multi_shard_modify_mode = 'sequential';
alter table restores add column looks_for_people boolean not null default false;

create or replace function keys_can_be_trusted() returns boolean
language plpgsql stable security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  if recovery_target() is not null and not exists (select from restores where target = recovery_target()) then
    raise exception using errcode = 'IN001',
      message = 'the database was restored; keys that were revoked since would work again until intake-server after-restore has run';
  end if;
  if exists (select from restores where looks_for_people) then
    raise exception using errcode = 'IN001',
      message = 'the database was restored; people who had been erased are being looked for, and keys work again when that is done';
  end if;
  return true;
end
$$;

create function people_are_hidden() returns void
language sql security definer set search_path = pg_catalog, public, pg_temp as $$
  update restores set looks_for_people = false
  where looks_for_people and not exists (select 1 from erasures where step = 'identify customers')
$$;

revoke execute on function people_are_hidden from public;
