-- The operator's console: an admin token is exchanged for a session, whose token is in a cookie.
create table operator_sessions (
  token_sha256 bytea primary key,
  -- The name of the admin token whose rights it has.
  admin_token text not null,
  -- No later than when the admin token expires.
  expires_at timestamptz not null
);
