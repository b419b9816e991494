-- Records that failed, each with its reasons, until they are corrected, discarded or too old. Of one record there is one
-- rejection, of its newest version. Not partitioned: an upload looks for rejections by the ids of its records, and would
-- have to look once per partition.
create table rejections (
  organisation_id uuid not null,
  -- A UUIDv7: the time at which the record failed.
  rejection_id uuid not null,
  type text not null,
  kind_id uuid not null,
  request_id uuid not null,
  -- The record's index in its request.
  index integer not null,
  record_id uuid,
  -- The record's own `updated`: storing an older version must not remove the rejection.
  updated timestamptz,
  -- JSON as it was sent, or as it would have been stored; null if it was not kept.
  record text,
  primary key (organisation_id, rejection_id)
);

create index rejections_by_type on rejections (organisation_id, type, rejection_id);
create index rejections_by_kind on rejections (organisation_id, kind_id, rejection_id);
create index rejections_by_request on rejections (organisation_id, request_id, rejection_id);
create unique index rejections_by_record on rejections (organisation_id, type, record_id) where record_id is not null;

-- The reasons, kept once for all records that failed for the same ones, with a count: a summary of a million rejections
-- reads a few rows.
create table rejection_kinds (
  organisation_id uuid not null,
  -- A hash of the type and the reasons.
  kind_id uuid not null,
  type text not null,
  -- Three arrays of the same length, one element per bad field.
  fields text[] not null,
  codes text[] not null,
  messages text[] not null,
  -- When a record last failed for these reasons, to the hour: a kind without rejections is removed some time later.
  used_at timestamptz not null,
  -- Without the differences since the last roll-up.
  rejections bigint not null default 0,
  primary key (organisation_id, kind_id)
);

create table rejection_count_changes (
  organisation_id uuid not null,
  kind_id uuid not null,
  rejections bigint not null
);

create index rejection_count_changes_of_organisation on rejection_count_changes (organisation_id, kind_id);
