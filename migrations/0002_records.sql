-- One table per record type. Columns are the type's fields by their own names, in the order of the registry.
-- References are not foreign keys: a trigger per row costs about 40 % of a bulk load, and rows are never removed, so a
-- record that was found stays found.
-- stored_at is when the service wrote the record, by the service's clock; `stored_since` filters by it.

create table customers (
  organisation_id uuid not null,
  customer_id uuid not null,
  user_id uuid not null,
  region text not null,
  birthdate date,
  institute_id uuid,
  course_id uuid,
  gender text,
  created timestamptz,
  updated timestamptz,
  is_deleted boolean not null,
  stored_at timestamptz not null default now(),
  primary key (organisation_id, customer_id)
);

create table transactions (
  organisation_id uuid not null,
  transaction_id uuid not null,
  shop_id uuid not null,
  region text not null,
  savings numeric not null,
  amount numeric not null,
  student_id uuid,
  offer_id uuid,
  branch_id uuid,
  source text,
  discount_name text,
  discount_type text,
  discount_value numeric,
  created timestamptz,
  updated timestamptz,
  is_deleted boolean not null,
  stored_at timestamptz not null default now(),
  primary key (organisation_id, transaction_id)
);

create table offers (
  organisation_id uuid not null,
  offer_id uuid not null,
  shop_id uuid not null,
  name text not null,
  type text not null,
  value numeric not null,
  region text not null,
  allowed_from timestamptz,
  allowed_to timestamptz,
  allowed_branches text,
  allowed_days text,
  is_enabled boolean,
  created timestamptz,
  updated timestamptz,
  is_deleted boolean not null,
  stored_at timestamptz not null default now(),
  primary key (organisation_id, offer_id)
);

create table shops (
  organisation_id uuid not null,
  shop_id uuid not null,
  name text not null,
  region text not null,
  is_public boolean,
  created timestamptz,
  updated timestamptz,
  is_deleted boolean not null,
  stored_at timestamptz not null default now(),
  primary key (organisation_id, shop_id)
);

create table branches (
  organisation_id uuid not null,
  branch_id uuid not null,
  shop_id uuid not null,
  name text not null,
  region text not null,
  latitude double precision,
  longitude double precision,
  created timestamptz,
  updated timestamptz,
  is_deleted boolean not null,
  stored_at timestamptz not null default now(),
  primary key (organisation_id, branch_id)
);

create table categories (
  organisation_id uuid not null,
  category_id uuid not null,
  name text not null,
  region text not null,
  created timestamptz,
  updated timestamptz,
  is_deleted boolean not null,
  stored_at timestamptz not null default now(),
  primary key (organisation_id, category_id)
);

create table shop_categories (
  organisation_id uuid not null,
  shop_category_id uuid not null,
  shop_id uuid not null,
  category_id uuid not null,
  region text not null,
  created timestamptz,
  updated timestamptz,
  is_deleted boolean not null,
  stored_at timestamptz not null default now(),
  primary key (organisation_id, shop_category_id)
);

create table institutes (
  organisation_id uuid not null,
  institute_id uuid not null,
  name text not null,
  region text not null,
  created timestamptz,
  updated timestamptz,
  is_deleted boolean not null,
  stored_at timestamptz not null default now(),
  primary key (organisation_id, institute_id)
);

create table courses (
  organisation_id uuid not null,
  course_id uuid not null,
  name text not null,
  created timestamptz,
  updated timestamptz,
  is_deleted boolean not null,
  stored_at timestamptz not null default now(),
  primary key (organisation_id, course_id)
);

create table tags (
  organisation_id uuid not null,
  tag_id uuid not null,
  name text not null,
  created timestamptz,
  updated timestamptz,
  is_deleted boolean not null,
  stored_at timestamptz not null default now(),
  primary key (organisation_id, tag_id)
);

create table shop_tags (
  organisation_id uuid not null,
  shop_tag_id uuid not null,
  shop_id uuid not null,
  tag_id uuid not null,
  created timestamptz,
  updated timestamptz,
  is_deleted boolean not null,
  stored_at timestamptz not null default now(),
  primary key (organisation_id, shop_tag_id)
);

create table keywords (
  organisation_id uuid not null,
  keyword_id uuid not null,
  name text not null,
  created timestamptz,
  updated timestamptz,
  is_deleted boolean not null,
  stored_at timestamptz not null default now(),
  primary key (organisation_id, keyword_id)
);

create table shop_keywords (
  organisation_id uuid not null,
  shop_keyword_id uuid not null,
  shop_id uuid not null,
  keyword_id uuid not null,
  created timestamptz,
  updated timestamptz,
  is_deleted boolean not null,
  stored_at timestamptz not null default now(),
  primary key (organisation_id, shop_keyword_id)
);

create table student_favourites (
  organisation_id uuid not null,
  student_favourite_id uuid not null,
  student_id uuid not null,
  shop_id uuid not null,
  created timestamptz,
  updated timestamptz,
  is_deleted boolean not null,
  stored_at timestamptz not null default now(),
  primary key (organisation_id, student_favourite_id)
);

-- How much an organisation has: the sums that maintenance rolled up, and the differences since. A single row updated by
-- every upload would make uploads wait for each other.
create table record_counts (
  organisation_id uuid not null,
  type text not null,
  records bigint not null,
  newest_updated timestamptz,
  last_upload timestamptz,
  primary key (organisation_id, type)
);

create table record_count_changes (
  organisation_id uuid not null,
  type text not null,
  records bigint not null,
  newest_updated timestamptz,
  last_upload timestamptz
);

create index record_count_changes_of_organisation on record_count_changes (organisation_id);
