-- Tokens of the admin API. The name says in the audit log who acted, so it is never given twice.
create table admin_tokens (
  name text primary key,
  -- SHA-256 of the whole token; the token itself is shown once, when it is issued, and stored nowhere.
  token_sha256 bytea not null unique,
  role text not null check (role in ('full', 'read-only')),
  created_at timestamptz not null default now(),
  created_by text not null,
  -- Null if it never expires.
  expires_at timestamptz,
  revoked_at timestamptz
);
