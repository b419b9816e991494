-- If PostgreSQL's statistics did not know an organisation, this index looked as good for finding an id as the primary key. Each
-- row that was read was then compared with all of the organisation's open ids. The primary key serves all statements.
set local lock_timeout = '3s';
drop index erasure_ids_by_erasure;

-- Older versions read the same rows without it.
update schema_compatibility set oldest_code = 1;
