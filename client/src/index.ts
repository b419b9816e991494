export type { IntakeOptions } from './connection.ts';
export type { AccessRequest, CountedErasure, Erasure, People, RequestedErasure } from './erasure-requests.ts';
export type { AccessRequestFilters, AccessRequests, ErasureFilters, Erasures } from './erasures.ts';
export { type ErrorCode, IntakeError } from './errors.ts';
export {
  type ChangesOf,
  type RecordOf,
  type ResourceType,
  resourceTypes,
  type StoredRecordOf,
  type UploadType,
} from './generated/resources.ts';
export {
  Intake,
  type InteractionFilters,
  type RecordFilters,
  type RejectionFilters,
  type ReportFilters,
  type RequestFilters,
} from './intake.ts';
export type { Interaction, NewInteraction, RecordedInteraction } from './interactions/interaction-batch.ts';
export type { Lake } from './lake/lake.ts';
export type { PulledTable, PullOptions, PullProgress } from './lake/pull-options.ts';
export type { ChangeEvent, ChangesOptions } from './reading/read-changes.ts';
export type { CollectedRecord } from './reading/read-collected.ts';
export type { RunEnding, RunFilters, RunOpening, Runs } from './runs.ts';
export type { Counts, RecordProblem, Warning } from './uploading/send-cuts.ts';
export type {
  FailedRecord,
  Records,
  Upload,
  UploadCounts,
  UploadedOf,
  UploadOptions,
  UploadResult,
  UploadStep,
} from './uploading/upload.ts';
