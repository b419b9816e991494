-- Interactions are counted like records from here on; those that are stored already, once. What a process of the version
-- before records while this one is rolled out is not counted.
insert into record_counts (organisation_id, type, records, newest_updated, last_upload)
select organisation_id, 'interactions', count(*), null, null from interactions group by organisation_id
on conflict (organisation_id, type) do nothing;
