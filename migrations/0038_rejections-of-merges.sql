-- How the record is stored over the one with the same id: as a whole, or field by field.
set local lock_timeout = '3s';
alter table rejections add column mode text not null default 'replace';
