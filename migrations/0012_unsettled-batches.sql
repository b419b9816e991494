-- The records that a batch stored while their type had many rejections. Their rejections are removed soon afterwards, and
-- before anything reads rejections; then the row is deleted. Looking for them in the batch's transaction would make it half
-- as fast.
set local lock_timeout = '3s';

create table unsettled_batches (
  organisation_id uuid not null,
  type text not null,
  batch_id uuid not null,
  -- Two arrays of the same length: the ids, and the version of each that was stored or found unchanged.
  record_ids uuid[] not null,
  updated timestamptz[] not null,
  primary key (organisation_id, type, batch_id)
);

-- Random ids cannot be compressed.
alter table unsettled_batches alter column record_ids set storage external, alter column updated set storage external;
