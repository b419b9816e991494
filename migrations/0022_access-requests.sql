-- Access requests: copies of everything that is stored about people, kept for some days to be downloaded.
set local lock_timeout = '3s';

create table access_requests (
  organisation_id uuid not null,
  -- A UUIDv7: the time of the request.
  access_request_id uuid not null,
  -- pending: requested; running: being collected; done: can be downloaded; expired: what was collected is deleted.
  state text not null default 'pending' check (state in ('pending', 'running', 'done', 'expired')),
  key_id text not null,
  -- How many ids were sent.
  people integer not null,
  -- What comes next, for maintenance: the step, and how far it has got.
  step text not null default 'collect customers',
  after text,
  -- How many records of each type were collected.
  records jsonb not null default '{}',
  started_at timestamptz,
  done_at timestamptz,
  primary key (organisation_id, access_request_id)
);

-- For maintenance, over all organisations.
create index access_requests_kept on access_requests (state, done_at) where state <> 'expired';

-- For counting those of one organisation: expired ones stay for good.
create index access_requests_of_organisation on access_requests (organisation_id) where state <> 'expired';

-- The ids of the people of a request that is not done yet.
create table access_request_ids (
  organisation_id uuid not null,
  access_request_id uuid not null,
  id text not null,
  -- Whether it is a user who was only seen together with a customer that was asked for.
  is_inferred boolean not null,
  primary key (organisation_id, id, access_request_id)
);

create index access_request_ids_by_request on access_request_ids (organisation_id, access_request_id);

create table access_request_records (
  organisation_id uuid not null,
  access_request_id uuid not null,
  type text not null,
  id text not null,
  -- JSON, as the API shows it.
  record text not null,
  -- The ids of people in it: when one of them is erased, it is hidden and then deleted.
  people jsonb not null,
  primary key (organisation_id, access_request_id, type, id)
);
