-- What processes and organisations do, for the operator: each process writes every minute that it is there, and the organisations
-- that kept it busiest.
set local lock_timeout = '3s';

create table processes (
  process_id uuid primary key,
  host text not null,
  version text not null,
  started_at timestamptz not null,
  seen_at timestamptz not null,
  is_leader boolean not null
);

-- The sums of one process, for the minute that ended then. Rows of the last two hours are kept.
create table organisation_activity (
  ended_at timestamptz not null,
  process_id uuid not null,
  organisation_id uuid not null,
  requests bigint not null,
  records bigint not null,
  interactions bigint not null,
  bytes bigint not null,
  rejections bigint not null,
  limits_hit bigint not null,
  primary key (ended_at, process_id, organisation_id)
);

-- When the leader last did each chore, and when it last failed.
create table chore_runs (
  chore text primary key,
  ran_at timestamptz,
  failed_at timestamptz
);
