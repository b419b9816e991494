-- For the number of keys that expire soon, which the leader counts, and for lists of them.
set local lock_timeout = '3s';

create index api_keys_expires_at on api_keys (expires_at) where revoked_at is null;
create index api_keys_successor_of on api_keys (successor_of) where successor_of is not null;
