-- During an upgrade, processes of the release before also store UUIDs in other spellings for organisations that are new.
set local lock_timeout = '3s';

alter table tenants alter column user_ids_rewritten_from set default now();
