-- Which code can work with this schema: the number of the newest migration that the oldest such code brings along. A
-- migration that takes something away which older code uses raises it; CONTRIBUTING.md has the rule.
create table schema_compatibility (
  is_only boolean primary key default true check (is_only),
  oldest_code integer not null
);
insert into schema_compatibility (oldest_code) values (11);
