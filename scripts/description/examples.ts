import { storedExample } from '../../src/http/operation/stored-records.ts';
import { interactionAnswer } from '../../src/interactions/answer.ts';
import { lakeSchema, schemaString } from '../../src/lake/table/lake-schema.ts';
import type { AuditEntry } from '../../src/operator/audit-log.ts';
import type { IssuedKey } from '../../src/operator/audited-actions.ts';
import type { Organisation } from '../../src/operator/organisations.ts';
import type { Receipt } from '../../src/receipts/find-receipts.ts';
import { required } from '../../src/registry/fields.ts';
import { interactionExample } from '../../src/registry/interaction.ts';
import { idFieldOf } from '../../src/registry/resources.ts';
import { correlation, definitions } from '../../src/reports/definitions.ts';
import type { Figures, RecommendationsReport } from '../../src/reports/read-report.ts';
import type { Run } from '../../src/runs/find-runs.ts';
import { batchAnswer, type UploadAnswer } from '../../src/uploads/answer/answer.ts';
import { created, failed, type Outcome } from '../../src/uploads/answer/outcome.ts';

/** Examples of responses, keyed by operation and status, or by the name of a response that several operations share. */
export type Examples = Readonly<Record<string, unknown>>;

const requestId = '019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f';

/** Creates an upload response with the same code as the service, so that the reference always matches real responses. */
function uploadAnswer(outcomes: readonly Outcome[]): UploadAnswer {
  const type = 'shops';
  const batch = batchAnswer({
    number: 1,
    batchId: '019ced6c-5a31-7f10-9a2b-3c4d5e6f7a8b',
    requestId,
    type,
    start: 0,
    outcomes,
    warnings: [],
  });
  return { request_id: requestId, type, batches: [batch] };
}

const { batches } = uploadAnswer([created]);
const receipt: Receipt = {
  request_id: requestId,
  operation: 'upload',
  type: 'shops',
  mode: 'replace',
  run_id: null,
  file: null,
  first_record: null,
  status: 200,
  received: '2026-03-14T09:26:53.035Z',
  key_id: '7dQk2LrX9Ab',
  idempotency_key: null,
  body_bytes: 214,
  duration_ms: 12,
  batch_count: 1,
  complete: true,
  missing_batches: [],
  counts: { received: 1, created: 1, updated: 0, unchanged: 0, stale: 0, failed: 0 },
  batches,
};
const { batches: _batches, ...receiptSummary } = receipt;

const run: Run = {
  run_id: '019ced6b-9d10-7b1c-8f2e-3d4c5b6a7988',
  name: 'nightly export',
  status: 'finished',
  opened: '2026-03-14T09:26:04.560Z',
  last_activity: '2026-03-14T09:27:10.042Z',
  ended: '2026-03-14T09:27:10.042Z',
  key_id: '7dQk2LrX9Ab',
  client_version: '0.2.0',
  file_count: 1,
  requests: 1,
  counts: receipt.counts,
  not_sent: 0,
  not_kept: 0,
  files: [
    {
      file: 0,
      name: 'shops.csv',
      bytes: 190,
      sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
      type: 'shops',
      requests: 1,
      counts: receipt.counts,
      not_sent: 0,
      not_kept: 0,
    },
  ],
};
const { files: _files, ...runSummary } = run;

const interaction = interactionAnswer({ ...interactionExample, interaction_id: requestId });

const figures: Figures = {
  touches: 1200,
  engaged_recommendations: 830,
  students: 410,
  discount_codes: 96,
  transactions: 41,
  transactions_by_offer: 30,
  transactions_by_shop: 11,
  revenue: 1033.5,
  savings: 154.2,
  share_of_transactions: 0.082,
};
const { engaged_recommendations: _engaged, ...ofBrowsing } = figures;
const report: RecommendationsReport = {
  from: '2026-03-01',
  to: '2026-04-01',
  window: '24h',
  group_by: 'item_type',
  as_of: '2026-04-02T08:15:00.000Z',
  correlation,
  definitions: { touch: definitions.touch },
  total: { recommendations: figures, browsing: ofBrowsing },
  all: { transactions: 500, revenue: 12904.75, savings: 1718.4 },
  unusable: { service_without_recommendation: 7, recommendation_without_service: 0 },
  groups: [],
  next_cursor: null,
};

const overview = {
  type: 'shops',
  records: 512,
  newest_updated: '2026-03-14T09:26:53Z',
  last_upload: '2026-03-14T09:30:00.123Z',
  open_rejections: 0,
};

const cursor = '42-0-0-1f0c2d3e-8Pz0oWc3l0rXyYQ1n9m5Kw';
const tag = storedExample('tags');
const change = { cursor, type: 'tags', id: tag.tag_id, deleted: false, erased: false, record: tag };
const expiry = { cursor, type: 'interactions', expired_before: '2026-01-01T00:00:00.000Z' };

const lakeTable = {
  table: 'interactions',
  state: 'following',
  version: 118,
  rows: 20_451_873,
  bytes: 198_113_402,
  files: 41,
  as_of: '2026-03-14T09:26:53.035Z',
};
const { name, description, columns } = lakeSchema('interactions');
const lakeFile = {
  file_id: 'c2a1f0de-3b47-4f6e-9d1c-7e5a8b90c4d2',
  partition: { received_on: '2026-03-14' },
  rows: 60_512,
  bytes: 2_711_884,
  sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
};
const lakeFiles = {
  table: name,
  version: lakeTable.version,
  table_id: requestId,
  description,
  schema: schemaString({ name, description, columns: columns.slice(0, 1) }),
  partition_columns: Object.keys(lakeFile.partition),
  files: [lakeFile],
  next_cursor: null,
};

export const publicExamples: Examples = {
  Uploaded: uploadAnswer([created]),
  UploadedInPart: uploadAnswer([created, failed(null, [{ field: idFieldOf('shops'), ...required }])]),
  Accepted: { received: 1, accepted: 1, errors: [], warnings: [] },
  'get-overview 200': { types: [overview] },
  'list-changes 200': { changes: [change, expiry], next_cursor: cursor, has_more: false },
  'list-requests 200': { requests: [receiptSummary], next_cursor: null },
  'get-request 200': receipt,
  'count-requests 200': {
    days: [
      { day: '2026-03-14', uploads: { complete: 1, partial: 1, failed: 0 }, records: receiptSummary.counts },
    ],
  },
  RunAnswer: run,
  'note-heartbeat 200': { run_id: run.run_id, status: 'running' },
  'list-runs 200': { runs: [runSummary], next_cursor: null },
  'get-run 200': {
    ...run,
    reasons: [],
    links: {
      requests: `/v1/requests?run_id=${run.run_id}`,
      rejections: `/v1/rejections?run_id=${run.run_id}`,
    },
  },
  'discard-rejections 200': { discarded: 12, has_more: false },
  'record-interaction 201': interaction,
  'get-interaction 200': interaction,
  'list-interactions 200': { interactions: [interaction], next_cursor: null },
  'report-recommendations 200': report,
  'get-lake 200': { tables: [lakeTable], notice: null },
  'list-lake-files 200': lakeFiles,
};

const organisation: Organisation = {
  organisation_id: requestId,
  slug: 'acme',
  name: 'Acme Student Discounts',
  created_at: '2026-03-14T09:26:53.035Z',
  suspended_at: null,
  deleted_at: null,
  removal: null,
  requests_per_second_max: null,
  interactions_per_second_max: null,
  records_per_second_max: 100_000,
  bytes_in_flight_max: null,
  recommendations_report: false,
  lake: false,
  interactions_kept_days: 90,
  receipts_kept_days: null,
  rejections_kept_days: null,
  records_stored_max: 50_000_000,
  bytes_stored_max: null,
  records_stored: 1_204_551,
  bytes_stored: null,
};

const issuedKey: IssuedKey = {
  key_id: '7dQk2LrX9Ab',
  organisation: 'acme',
  permissions: ['data:write', 'data:read'],
  browser: false,
  origins: [],
  link: false,
  label: 'nightly export',
  created_at: '2026-03-14T09:26:53.035Z',
  created_by: 'token:deploy',
  last_used_at: null,
  expires_at: null,
  revoked_at: null,
  successor_of: null,
  key: 'intake_7dQk2LrX9Ab_…',
};
const { key: _key, ...listedKey } = issuedKey;

const auditEntry: AuditEntry = {
  audit_id: '42',
  at: '2026-03-14T09:26:53.035Z',
  actor: 'token:deploy',
  act: 'key.issue',
  organisation: 'acme',
  key_id: '7dQk2LrX9Ab',
  request_id: requestId,
  details: { permissions: ['data:write', 'data:read'], label: 'nightly export', expires_at: null },
  imported_at: null,
};

export const adminExamples: Examples = {
  'create-organisation 201': organisation,
  'list-organisations 200': {
    organisations: [{ ...organisation, records: 1_204_551, last_upload_at: '2026-03-14T09:26:53.035Z' }],
    next_cursor: null,
  },
  'get-organisation 200': organisation,
  'change-organisation 200': organisation,
  'delete-organisation 200': { ...organisation, deleted_at: '2026-03-14T10:00:00.000Z' },
  'restore-organisation 200': organisation,
  'get-lake-of-organisation 200': { state: 'following', as_of: '2026-03-14T09:26:53.035Z', lag_seconds: 34 },
  'issue-key 201': issuedKey,
  'issue-console-link 201': {
    path: '/console/sign-in#…',
    key_id: issuedKey.key_id,
    expires_at: '2026-03-14T10:26:53.035Z',
  },
  'list-keys 200': { keys: [listedKey], next_cursor: null },
  'rotate-key 201': issuedKey,
  'revoke-key 200': { ...listedKey, revoked_at: '2026-03-14T10:00:00.000Z' },
  'list-requests-of-organisation 200': { requests: [receiptSummary], next_cursor: null },
  'summarise-rejections-of-organisation 200': {
    rejections: [
      {
        type: 'transactions',
        code: 'reference_not_found',
        field: 'shop_id',
        count: 12,
        first_seen: '2026-03-14T09:26:53.035Z',
        last_seen: '2026-03-14T09:30:12.801Z',
      },
    ],
  },
  'get-usage-of-organisation 200': {
    types: [
      { type: 'transactions', records: 1_204_551, bytes: 385_456_320 },
      { type: 'shops', records: 512, bytes: 106_496 },
    ],
    days: [
      { day: '2026-03-14', uploads: { complete: 1, partial: 1, failed: 0 }, records: receiptSummary.counts },
    ],
  },
  'list-busiest-organisations 200': {
    from: '2026-03-14T09:21:53.035Z',
    to: '2026-03-14T09:26:53.035Z',
    organisations: [
      {
        organisation_id: requestId,
        slug: 'acme',
        name: 'Acme Student Discounts',
        requests: 214,
        records: 1_000_000,
        interactions: 14,
        bytes: 412_000_000,
        rejections: 12,
        limits_hit: 0,
      },
    ],
  },
  'get-service 200': {
    processes: [
      {
        process_id: requestId,
        host: 'intake-1',
        version: '0.2.0+49dec8a12345',
        started_at: '2026-03-13T07:00:00.000Z',
        seen_at: '2026-03-14T09:26:53.035Z',
        is_leader: true,
      },
    ],
    maintenance: [{ chore: 'make partitions', ran_at: '2026-03-14T09:00:01.412Z', failed_at: null }],
    waiting: [{ work: 'erasures', count: 1, oldest_seconds: 4.2 }],
    partitions: [{ table: 'interactions', count: 12, ends_at: '2026-03-22T00:00:00.000Z' }],
    nodes: null,
    receipts_kept_days: 30,
    deleted_organisations_kept_days: 30,
  },
  'list-audit-entries 200': { entries: [auditEntry], next_cursor: null },
};
