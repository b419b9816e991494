-- What the report on recommendations is read from; docs/recommendations.md defines its figures. Maintenance keeps these
-- tables up to date from the change log. Neither interactions nor transactions has an index by student and time, because
-- one would slow down every upload.

-- How far maintenance has counted for each organisation.
create table report_progress (
  organisation_id uuid primary key,
  -- Counts the steps.
  step bigint not null,
  -- The last number of the change log that is counted.
  number bigint not null,
  -- Up to which ids the tables themselves have been read; null if reading them is not needed.
  interactions_after uuid,
  transactions_after uuid
);

-- Each interaction that is counted, with what the report needs of it. The primary key finds the last interaction of a student
-- with an item before a time, however many there are.
create table report_interactions (
  organisation_id uuid not null,
  -- All zeros if the interaction has none.
  student_id uuid not null,
  item_id uuid not null,
  basis text not null,
  event_time timestamptz not null,
  interaction_id uuid not null,
  item_type text not null,
  is_code boolean not null,
  platform text,
  country text,
  recommendation_id uuid,
  -- The step that added it.
  step bigint not null,
  -- With these two, the index alone is read.
  primary key (organisation_id, student_id, item_id, basis, event_time, interaction_id) include (item_type, step)
);

create index report_interactions_by_step on report_interactions (organisation_id, step);
create index report_interactions_by_recommendation_and_item
  on report_interactions (organisation_id, recommendation_id, item_id, event_time) include (item_type, step)
  where basis = 'recommendation';
create index report_interactions_by_recommendation_and_student
  on report_interactions (organisation_id, recommendation_id, student_id, event_time) include (step)
  where basis = 'recommendation';

-- The days on which a student, or a recommendation, has interactions, by item type, platform and country. A student who is
-- very active on one day still has few rows here, so reading all days of a student is cheap.
create table report_visits (
  organisation_id uuid not null,
  subject_id uuid not null,
  is_recommendation boolean not null,
  basis text not null,
  day date not null,
  item_type text collate "C" not null,
  -- As values of groups: a hyphen for null, otherwise an equals sign and the value.
  platform text collate "C" not null,
  country text collate "C" not null,
  step bigint not null,
  primary key (organisation_id, subject_id, is_recommendation, basis, day, item_type, platform, country) include (step)
);

create index report_visits_by_step on report_visits (organisation_id, step);

-- Each transaction that is counted, as it was when it was counted.
create table report_transactions (
  organisation_id uuid not null,
  transaction_id uuid not null,
  created timestamptz not null,
  student_id uuid,
  shop_id uuid not null,
  offer_id uuid,
  amount numeric not null,
  savings numeric not null,
  primary key (organisation_id, transaction_id)
);

create index report_transactions_by_student on report_transactions (organisation_id, student_id, created)
  where student_id is not null;

-- The figures of each group on each day. All windows are in one row, because a credit nearly always counts in several.
create table report_sums (
  organisation_id uuid not null,
  dimension text not null,
  value text collate "C" not null,
  day date not null,
  basis text not null,
  touches bigint not null default 0,
  students bigint not null default 0,
  -- At position n: how many of these students also have interactions in the n days before; the last position stands for
  -- all later ones. The distinct students of a range are the sum over its days, less those seen on an earlier day of the range.
  students_seen bigint[],
  recommendations bigint not null default 0,
  recommendations_seen bigint[],
  codes_1h bigint not null default 0,
  codes_24h bigint not null default 0,
  codes_7d bigint not null default 0,
  transactions_1h bigint not null default 0,
  transactions_24h bigint not null default 0,
  transactions_7d bigint not null default 0,
  by_offer_1h bigint not null default 0,
  by_offer_24h bigint not null default 0,
  by_offer_7d bigint not null default 0,
  revenue_1h numeric not null default 0,
  revenue_24h numeric not null default 0,
  revenue_7d numeric not null default 0,
  savings_1h numeric not null default 0,
  savings_24h numeric not null default 0,
  savings_7d numeric not null default 0,
  primary key (organisation_id, dimension, value, day, basis)
) with (fillfactor = 80);

create index report_sums_by_day on report_sums (organisation_id, dimension, day);
