// The api/ folder contains all calls to the service, except those that upload a file.

import type { components } from '../../../client/src/generated/api.ts';

type Schemas = components['schemas'];

export type Overview = Schemas['Overview'];
export type DayOfUploads = Schemas['DaysOfUploads']['days'][number];
export type ReceiptSummary = Schemas['ReceiptSummary'];
export type ReceiptPage = Schemas['ReceiptPage'];
export type Receipt = Schemas['Receipt'];
export type Run = Schemas['Run'];
export type RunSummary = Schemas['RunSummary'];
export type RunPage = Schemas['RunPage'];
export type BatchAnswer = Schemas['BatchAnswer'];
export type RecordError = Schemas['RecordError'];
export type Counts = Schemas['Counts'];
export type Rejection = Schemas['Rejection'];
export type RejectionPage = Schemas['RejectionPage'];
export type RejectionGroup = Schemas['RejectionSummary']['rejections'][number];
export type ReplayAnswer = Schemas['ReplayAnswer'];
export type UploadAnswer = Schemas['UploadAnswer'];
export type Interaction = Schemas['Interaction'];
export type InteractionPage = Schemas['InteractionPage'];
export type Erasure = Schemas['Erasure'];
export type ErasurePage = Schemas['ErasurePage'];
export type RequestedErasure = Schemas['RequestedErasure'];
export type CountedErasure = Schemas['CountedErasure'];
export type AccessRequest = Schemas['AccessRequest'];
export type AccessRequestPage = Schemas['AccessRequestPage'];
export type ErrorBody = Schemas['Error'];
export type ErrorDetail = Schemas['ErrorDetail'];

/** A record of any type. The type's schema defines its fields. */
export type StoredRecord = Readonly<Record<string, unknown>>;

export interface RecordPage {
  readonly records: readonly StoredRecord[];
  readonly next_cursor: string | null;
}

export interface Session {
  readonly organisation: { readonly slug: string; readonly name: string };
  readonly key: {
    readonly key_id: string;
    readonly label: string | null;
    readonly permissions: readonly string[];
    readonly expires_at: string | null;
  };
  readonly limits: {
    readonly requests_per_second_max: Limit;
    readonly interactions_per_second_max: Limit;
    readonly records_per_second_max: Limit;
    readonly bytes_in_flight_max: Limit;
  };
  /** The quotas that are at least 80 % used. */
  readonly quotas: readonly NearQuota[];
  readonly expires_at: string;
}

export interface NearQuota {
  readonly what: 'records' | 'bytes';
  readonly used: number;
  readonly max: number;
}

export interface Limit {
  readonly value: number;
  /** Whether the limit is the service's default, which applies if the organisation does not have its own limit. */
  readonly is_default: boolean;
}
