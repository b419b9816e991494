-- What the report on recommendations is read from; docs/recommendations.md defines its figures. Maintenance keeps it up to date
-- from the change log. Neither interactions nor transactions have an index by student and time, and one would cost every
-- upload; these tables are written in the background.

-- How far maintenance has come with each organisation.
create table report_progress (
  organisation_id uuid primary key,
  -- Counts the steps.
  step bigint not null,
  -- The last number of the change log that is counted.
  number bigint not null,
  -- Up to which ids the tables themselves have been walked through; null where that is not needed.
  interactions_after uuid,
  transactions_after uuid
);

-- Each interaction that is counted, with what the report needs of it.
create table report_interactions (
  organisation_id uuid not null,
  interaction_id uuid not null,
  event_time timestamptz not null,
  basis text not null,
  is_code boolean not null,
  student_id uuid,
  item_type text not null,
  item_id uuid not null,
  platform text,
  country text,
  recommendation_id uuid,
  -- In which step it was added.
  step bigint not null,
  primary key (organisation_id, interaction_id)
);

create index report_interactions_by_student on report_interactions (organisation_id, student_id, event_time)
  where student_id is not null;
-- Its condition is one that only a search by recommendation fulfils: for others, all touches of an organisation look cheap.
create index report_interactions_by_recommendation on report_interactions (organisation_id, recommendation_id)
  where basis = 'recommendation' and recommendation_id is not null;

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

-- To which interaction a discount code or a transaction is credited, for each window in hours: what is taken out of the sums
-- before it is credited anew.
create table report_credits (
  organisation_id uuid not null,
  -- An interaction or a transaction, whose ids may be the same.
  is_code boolean not null,
  credited_id uuid not null,
  window_hours integer not null,
  day date not null,
  basis text not null,
  item_type text not null,
  item_id uuid not null,
  platform text,
  country text,
  recommendation_id uuid,
  is_by_offer boolean not null,
  revenue numeric not null,
  savings numeric not null,
  primary key (organisation_id, is_code, credited_id, window_hours)
);

-- Everything that can be added up. Touches, and all transactions, have window_hours 0.
create table report_sums (
  organisation_id uuid not null,
  dimension text not null,
  value text collate "C" not null,
  day date not null,
  window_hours integer not null,
  basis text not null,
  touches bigint not null,
  codes bigint not null,
  transactions bigint not null,
  by_offer bigint not null,
  revenue numeric not null,
  savings numeric not null,
  primary key (organisation_id, dimension, value, day, window_hours, basis)
);

create index report_sums_by_day on report_sums (organisation_id, dimension, day);

-- How many students, or recommendations, have a touch on a day and had their last one before on that other day. The distinct
-- ones of a range are then a sum: those whose day is in the range, and whose day before is not.
create table report_reach (
  organisation_id uuid not null,
  dimension text not null,
  value text collate "C" not null,
  day date not null,
  previous_day date not null,
  students bigint not null,
  recommendations bigint not null,
  browsing_students bigint not null,
  -- There are many small rows to add up: with the counts in it, the index alone is read.
  primary key (organisation_id, dimension, value, day, previous_day) include (students, recommendations, browsing_students)
);

-- What is stored already is counted by walking through it once.
insert into report_progress (organisation_id, step, number, interactions_after, transactions_after)
select organisation_id, 0, 0, '00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000'
from tenants;
