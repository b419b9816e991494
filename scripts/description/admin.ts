import { measures } from '../../src/activity/activity-counts.ts';
import type { JsonSchema, Operation } from '../../src/http/operation/operation.ts';
import { answerSchemas, closed, pageSchema } from './answers.ts';
import { adminExamples } from './examples.ts';
import { describeOperations } from './openapi.ts';

const text = { type: 'string' };
const textOrNull = { type: ['string', 'null'] };
const instant = { type: 'string', format: 'date-time' };
const instantOrNull = { type: ['string', 'null'], format: 'date-time' };
const usage = {
  type: ['integer', 'null'],
  description:
    'how much is stored, as measured within the last minute; null without a quota, and until the first measurement',
};
const quota = { type: ['integer', 'null'], description: 'how much may be stored; null: no quota' };
const limit = { type: ['integer', 'null'], description: 'null: the default of the service' };
const keptDays = {
  type: ['integer', 'null'],
  description: 'null: as long as the service keeps them; interactions forever',
};

const key = {
  key_id: text,
  organisation: text,
  permissions: { type: 'array', items: text },
  browser: { type: 'boolean', description: 'whether it only records interactions, from pages of `origins`' },
  origins: { type: 'array', items: text, description: 'empty unless `browser`' },
  link: { type: 'boolean', description: 'whether it belongs to a link to the console and cannot be sent' },
  label: textOrNull,
  created_at: instant,
  created_by: text,
  last_used_at: { ...instantOrNull, description: 'to the minute' },
  expires_at: instantOrNull,
  revoked_at: instantOrNull,
  successor_of: textOrNull,
};

/** The schemas from the public API that admin responses also use. */
const shared = Object.fromEntries(
  ['RecordType', 'ProblemCode', 'Counts', 'ReceiptSummary', 'ReceiptPage'].map((name) => [
    name,
    answerSchemas[name] as JsonSchema,
  ]),
);
const count = { type: 'integer', minimum: 0 };
const listOf = (properties: Record<string, unknown>) => ({ type: 'array', items: closed(properties) });

const organisation = {
  organisation_id: { type: 'string', format: 'uuid' },
  slug: text,
  name: text,
  created_at: instant,
  suspended_at: instantOrNull,
  deleted_at: instantOrNull,
  removal: {
    oneOf: [{ $ref: '#/components/schemas/Removal' }, { type: 'null' }],
    description: 'null until the removal of a deleted organisation has begun',
  },
  requests_per_second_max: limit,
  interactions_per_second_max: limit,
  records_per_second_max: limit,
  bytes_in_flight_max: limit,
  recommendations_report: {
    type: 'boolean',
    description: 'whether the report on recommendations is switched on',
  },
  lake: { type: 'boolean', description: 'whether its interactions are also written to the lake' },
  records_stored_max: quota,
  bytes_stored_max: quota,
  records_stored: usage,
  bytes_stored: usage,
  interactions_kept_days: keptDays,
  receipts_kept_days: keptDays,
  rejections_kept_days: keptDays,
};

const schemas: Readonly<Record<string, JsonSchema>> = {
  Organisation: closed(organisation),
  ListedOrganisation: closed({
    ...organisation,
    records: { ...count, description: 'how many records and interactions are stored' },
    last_upload_at: { ...instantOrNull, description: 'null if nothing was uploaded' },
  }),
  LakeState: closed({
    state: {
      type: 'string',
      enum: ['off', 'waiting', 'copying', 'following'],
      description:
        '`waiting`: no process is writing it yet. `copying`: stored data is being copied. `following`: new data is added',
    },
    as_of: { ...instantOrNull, description: 'when it was last complete' },
    lag_seconds: {
      type: ['integer', 'null'],
      minimum: 0,
      description:
        'the age of the oldest change that is not in it; 0 if it is complete, null until everything is copied',
    },
  }),
  Removal: closed({
    started_at: instant,
    table: { ...textOrNull, description: 'the current table' },
    rows: { type: 'integer', description: 'rows removed so far, from all tables' },
  }),
  OrganisationPage: pageSchema('organisations', 'ListedOrganisation'),
  Key: closed(key),
  IssuedKey: closed({ ...key, key: { ...text, description: 'shown only once' } }),
  KeyPage: pageSchema('keys', 'Key'),
  ConsoleLink: closed({
    path: { ...text, description: 'append it to the address of the service; shown only once' },
    key_id: text,
    expires_at: instant,
  }),
  AuditEntry: closed({
    audit_id: text,
    at: instant,
    actor: {
      ...text,
      description:
        '`token:` and the name of an admin token, `cli:` and the user that ran a command, or `maintenance`, which removes organisations',
    },
    act: { ...text, description: 'such as `key.issue`' },
    organisation: textOrNull,
    key_id: textOrNull,
    request_id: { ...textOrNull, description: 'the request to the admin API, if it was one' },
    details: { type: 'object', additionalProperties: true },
    imported_at: {
      ...instantOrNull,
      description: 'when the entry was imported after a restore; null for all others',
    },
  }),
  AuditPage: pageSchema('entries', 'AuditEntry'),
  ...shared,
  RejectionCounts: closed({
    rejections: listOf({
      type: { $ref: '#/components/schemas/RecordType' },
      code: { $ref: '#/components/schemas/ProblemCode' },
      field: textOrNull,
      count,
      first_seen: instant,
      last_seen: instant,
    }),
  }),
  Usage: closed({
    types: listOf({
      type: {
        ...text,
        description: 'a record type, `interactions`, or `access-requests` for what they collected',
      },
      records: count,
      bytes: { ...count, description: 'estimated' },
    }),
    days: (answerSchemas.DaysOfUploads as { properties: Record<string, JsonSchema> }).properties.days,
  }),
  BusiestOrganisations: closed({
    from: instant,
    to: instant,
    organisations: listOf({
      organisation_id: { type: 'string', format: 'uuid' },
      slug: { ...textOrNull, description: 'null if the organisation is gone' },
      name: textOrNull,
      ...Object.fromEntries(measures.map((measure) => [measure, count])),
    }),
  }),
  Service: closed({
    processes: listOf({
      process_id: { type: 'string', format: 'uuid' },
      host: text,
      version: text,
      started_at: instant,
      seen_at: { ...instant, description: 'updated once a minute; a killed process is listed for an hour' },
      is_leader: { type: 'boolean', description: 'whether it runs maintenance' },
    }),
    maintenance: listOf({ chore: text, ran_at: instantOrNull, failed_at: instantOrNull }),
    waiting: listOf({
      work: { ...text, description: 'such as `erasures`' },
      count,
      oldest_seconds: {
        type: 'number',
        minimum: 0,
        description: 'the age of the oldest; 0 if nothing waits',
      },
    }),
    partitions: listOf({
      table: text,
      count,
      ends_at: { ...instant, description: 'later rows would find no partition; maintenance adds them ahead' },
    }),
    nodes: {
      oneOf: [
        listOf({ name: text, port: count, is_active: { type: 'boolean' } }),
        { type: 'null', description: 'it is not a cluster' },
      ],
    },
    receipts_kept_days: { ...count, description: '`RECEIPTS_KEPT_DAYS` of the process that answers' },
    deleted_organisations_kept_days: {
      ...count,
      description: '`DELETED_ORGANISATIONS_KEPT_DAYS` of the process that answers',
    },
  }),
};

/** Describes the admin API as OpenAPI 3.1. */
export function describeAdminApi(operations: readonly Operation<never>[]): JsonSchema {
  return describeOperations(operations, {
    api: 'admin',
    title: 'Intake admin',
    summary: 'Organisations, their limits, their keys, and the audit log.',
    description:
      'For the operator, on its own port and with its own tokens, which `intake-server tokens issue` creates. A read-only token ' +
      'permits every GET; other requests get 403. Every change is written to the audit log, with the name of the token.',
    tags: [
      { name: 'Organisations', description: 'Who may send, and how much.' },
      { name: 'Keys', description: 'Issuing, rotating and revoking API keys.' },
      { name: 'Console', description: 'Links that sign somebody in.' },
      { name: 'Service', description: 'Traffic by organisation, and the state of the service.' },
      { name: 'Audit', description: 'Who did what, and when.' },
      { name: 'Health', description: 'For load balancers and monitoring.' },
    ],
    security: {
      adminToken: {
        type: 'http',
        scheme: 'bearer',
        description: 'A token from `intake-server tokens issue`.',
      },
    },
    schemas,
    examples: adminExamples,
  });
}
