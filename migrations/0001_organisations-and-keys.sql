-- Read before the organisation of a request is known, and small: these two alone do not lead with organisation_id.

create table organisations (
  organisation_id uuid primary key,
  slug text not null unique,
  name text not null,
  created_at timestamptz not null default now()
);

create table api_keys (
  key_id text primary key,
  organisation_id uuid not null references organisations,
  -- SHA-256 of the whole key; the key itself is shown once, when it is issued, and stored nowhere.
  key_sha256 bytea not null,
  permissions text[] not null,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  -- Set when a successor is issued: until then the key goes on working beside it.
  expires_at timestamptz
);

create index api_keys_of_organisation on api_keys (organisation_id);
