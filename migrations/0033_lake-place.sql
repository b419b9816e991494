-- The lake's files belong to one database. A marker next to the files names it, and the same claim is stored here.
create table lake_place (
  is_only boolean primary key default true check (is_only),
  -- With the server's identifier and the database's oid, this identifies the database. after-restore replaces it, because a
  -- restored server has the identifier of the original.
  database_id uuid not null default gen_random_uuid(),
  -- The claim in the place's newest marker, the fingerprint of the database that made it, and the address of the place. Null
  -- until a process has claimed a place.
  claim uuid,
  fingerprint text,
  url text
);
insert into lake_place default values;
