-- While this waits for a table that somebody reads, whoever comes after waits too: rather give up and be run again.
set local lock_timeout = '3s';

-- An old week goes in two steps. Detaching its tables is short, but excludes everyone; counting and dropping what was
-- detached may take long, and excludes nobody. drop_weekly_partition did both at once and locked the partition before
-- its parent, while queries lock the parent first.
drop function drop_weekly_partition;

-- Detaches one table of a week that ended before so many days ago, the oldest first; false where there is none. The new
-- name marks it for drop_detached_partition, and keeps apart what somebody detached by hand.
-- One parent per transaction: an upload holds receipt_batches, rejections and receipts in an order of its own, and would
-- deadlock with whoever holds one of them and waits for another. Receipts go before their answers, so that a receipt that
-- is found is whole.
create function detach_weekly_partition(days_kept integer) returns boolean
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set timezone = 'UTC' set lock_timeout = '2s' as $$
declare
  parent text;
  partition text;
begin
  if days_kept < 7 then
    raise exception 'days_kept must be 7 or more';
  end if;
  perform pg_advisory_xact_lock(hashtext('ensure_weekly_partitions'));
  select p.relname, c.relname into parent, partition
  from pg_inherits i join pg_class p on p.oid = i.inhparent join pg_class c on c.oid = i.inhrelid
  where p.oid in ('public.receipts'::regclass, 'public.receipt_batches'::regclass, 'public.rejections'::regclass)
    and c.relname ~ '_\d{4}_\d\d_\d\d$'
    and right(c.relname, 10) <= to_char(now() - make_interval(days => days_kept + 7), 'YYYY_MM_DD')
  order by right(c.relname, 10), array_position(array['receipts', 'receipt_batches', 'rejections'], p.relname::text)
  limit 1;
  if partition is null then
    return false;
  end if;
  -- Locks the parent, then the partition.
  execute format('alter table public.%I detach partition public.%I', parent, partition);
  execute format('alter table public.%I rename to %I', partition, 'to_drop_' || partition);
  return true;
end
$$;

-- Drops a table that detach_weekly_partition has detached; of rejections the counts are taken off in the same
-- transaction, so it is done once, whenever it is interrupted. Whoever is second leaves it to the first.
create function drop_detached_partition(partition text) returns void
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set lock_timeout = '2s' as $$
begin
  if partition !~ '^to_drop_(receipts|receipt_batches|rejections)_\d{4}_\d\d_\d\d$' then
    raise exception 'not a detached week: %', partition;
  end if;
  if not pg_try_advisory_xact_lock(hashtext(partition)) or to_regclass('public.' || partition) is null then
    return;
  end if;
  if partition like 'to_drop_rejections%' then
    execute format('lock table public.%I in access exclusive mode', partition);
    execute format('insert into public.record_count_changes (organisation_id, type, records, rejections)
      select organisation_id, type, 0, -count(*) from public.%I group by organisation_id, type', partition);
  end if;
  execute format('drop table public.%I', partition);
end
$$;

revoke execute on function detach_weekly_partition, drop_detached_partition from public;

-- Records that were nested too deeply were kept as they came. Some are not JSON, and break the page they are on.
update rejections set record = null where 'nested_too_deeply' = any (codes);

-- Of the file that was run, so that migrate notices one that was changed since. Null: run before this was kept. Last, as
-- it excludes processes that start.
alter table schema_migrations add column sha256 text;
