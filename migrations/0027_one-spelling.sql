-- A user_id in UUID form is stored in lower case. Earlier releases stored it as it was sent.
set local lock_timeout = '3s';
-- In a cluster, if a table is altered on all nodes in parallel, no function can be created in the same transaction.
set local citus.multi_shard_modify_mode = 'sequential';

-- False until a job has rewritten the organisation's stored interactions. Organisations that are added later have none.
alter table tenants add column user_ids_rewritten boolean not null default false;
alter table tenants alter column user_ids_rewritten set default true;

-- Rewrites user ids among these interactions. Runs as the owner, because the service may not update interactions.
create function rewrite_user_ids(organisation uuid, wanted uuid[], first_id uuid, last_id uuid) returns bigint
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare changed bigint;
begin
  update public.interactions t set user_id = lower(t.user_id)
  where t.organisation_id = organisation and t.interaction_id = any (wanted)
    and t.interaction_id >= first_id and t.interaction_id <= last_id
    and t.user_id ~ '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$' and t.user_id ~ '[A-F]';
  get diagnostics changed = row_count;
  return changed;
end
$$;

revoke execute on function rewrite_user_ids from public;

-- Returns whether nobody was erased since the given version of suppressions, and the hashed form of a key is not claimed.
-- A volatile function sees transactions that were committed while the calling statement waited for a lock.
create function is_key_free(organisation uuid, version integer, hashed text) returns boolean
language plpgsql volatile as $$
begin
  return (select t.suppressions_version from public.tenants t where t.organisation_id = organisation) = version
    and (version = 0 or not exists (
      select from public.interaction_idempotency_keys k
      where k.organisation_id = organisation and k.idempotency_key = hashed));
end
$$;

revoke execute on function is_key_free from public;
