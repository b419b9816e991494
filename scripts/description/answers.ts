import type { JsonSchema } from '../../src/http/operation/operation.ts';
import { limits } from '../../src/limits.ts';
import { modes, problemCodes } from '../../src/registry/fields.ts';
import { uploadTypes } from '../../src/registry/upload-types.ts';
import { groupings, windowNames } from '../../src/reports/definitions.ts';
import { runStatuses } from '../../src/runs/find-runs.ts';

const count = { type: 'integer', minimum: 0 };
const index = { type: 'integer', minimum: 0, description: "position in the request's `records`, from 0" };
const text = { type: 'string' };
const uuid = { type: 'string', format: 'uuid' };

/** Returns an object schema whose properties are all required. */
export function closed(properties: Record<string, unknown>): JsonSchema {
  return { type: 'object', required: Object.keys(properties), properties };
}

/**
 * Returns a page's schema. The page has a property with the name `member`, which lists objects with the given schema.
 */
export function pageSchema(member: string, schema: string): JsonSchema {
  return closed({
    [member]: { type: 'array', items: { $ref: `#/components/schemas/${schema}` } },
    next_cursor: { type: ['string', 'null'], description: 'null on the last page' },
  });
}

function withOptional(schema: JsonSchema, more: Record<string, unknown>): JsonSchema {
  return { ...schema, properties: { ...(schema.properties as object), ...more } };
}

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const type = ref('RecordType');
const instant = { type: 'string', format: 'date-time' };
const day = { type: 'string', format: 'date' };
const sum = { type: 'number', minimum: 0 };
const figures = withOptional(
  closed({
    touches: count,
    students: count,
    discount_codes: count,
    transactions: count,
    transactions_by_offer: count,
    transactions_by_shop: count,
    revenue: sum,
    savings: sum,
    share_of_transactions: { type: ['number', 'null'], minimum: 0, maximum: 1 },
  }),
  { engaged_recommendations: { ...count, description: 'not for browsing' } },
);
const bothFigures = closed({
  recommendations: ref('RecommendationsFigures'),
  browsing: {
    oneOf: [ref('RecommendationsFigures'), { type: 'null' }],
    description: 'null with `group_by=recommendation`',
  },
});
const batches = {
  type: 'array',
  description: `one result per ${limits.recordsPerBatch.toLocaleString('en')} records, in the order sent; each is stored in its own transaction`,
  items: ref('BatchAnswer'),
};
const countsSchema = closed({
  received: count,
  created: count,
  updated: count,
  unchanged: count,
  stale: count,
  failed: count,
});
const counts = ref('Counts');
const code = ref('ProblemCode');
const typeOrNull = (description: string) => ({
  type: ['string', 'null'],
  enum: [...uploadTypes, null],
  description,
});
const receipt = {
  request_id: uuid,
  operation: { type: 'string', enum: ['upload', 'replay'] },
  type: typeOrNull('null for a replay of several types'),
  mode: {
    type: ['string', 'null'],
    enum: [...modes, null],
    description: 'null for interactions, replays and receipts of earlier versions',
  },
  run_id: { type: ['string', 'null'], format: 'uuid', description: 'null if the request named no run' },
  file: { type: ['integer', 'null'], minimum: 0, description: 'the index of the file in the run, from 0' },
  first_record: {
    type: ['integer', 'null'],
    minimum: 1,
    description: "the number of the request's first record in the file",
  },
  status: { type: 'integer', enum: [200, 207, 400], description: 'of the batches that are stored' },
  received: instant,
  key_id: text,
  idempotency_key: { type: ['string', 'null'] },
  body_bytes: count,
  duration_ms: count,
  batch_count: { ...count, description: 'how many batches the request has' },
  complete: { type: 'boolean', description: 'whether every batch is stored' },
  missing_batches: { type: 'array', items: { type: 'integer', minimum: 1 } },
  counts,
};

const unseen = {
  not_sent: { ...count, description: 'records that the client did not send; 0 until the run has ended' },
  not_kept: {
    ...count,
    description: 'records that the client sent and the service did not keep; 0 until the run has ended',
  },
};
const runSummary = {
  run_id: uuid,
  name: text,
  status: {
    type: 'string',
    enum: runStatuses,
    description:
      'an open run is `interrupted` without a request or a heartbeat for 15 minutes, and `running` again with the next one',
  },
  opened: instant,
  last_activity: {
    ...instant,
    description: 'when it was opened, when it ended, or its last request or heartbeat',
  },
  ended: { type: ['string', 'null'], format: 'date-time' },
  key_id: text,
  client_version: { type: ['string', 'null'] },
  file_count: count,
  requests: { ...count, description: 'receipts of the run' },
  counts,
  ...unseen,
};
const run = {
  ...runSummary,
  files: {
    type: 'array',
    items: closed({
      file: { ...count, description: 'its index, from 0' },
      name: text,
      bytes: count,
      sha256: text,
      type,
      requests: count,
      counts,
      ...unseen,
    }),
  },
};

/** The response schemas for uploads, receipts, rejections and warnings. */
const erasure = {
  erasure_id: uuid,
  mode: { type: 'string', enum: ['anonymise', 'delete'] },
  state: { type: 'string', enum: ['pending', 'running', 'swept', 'done'] },
  requested: instant,
  key_id: text,
  people: { type: 'integer', description: 'how many ids were sent' },
  known: { type: 'integer', description: 'how many customers of them were stored' },
  rows: {
    type: 'object',
    additionalProperties: { type: 'integer' },
    description: 'how many rows of each table were changed or deleted',
  },
  started: { type: ['string', 'null'] },
  swept: { type: ['string', 'null'] },
  done: { type: ['string', 'null'] },
  lake: {
    type: ['string', 'null'],
    enum: ['pending', 'done', null],
    description:
      'whether the files of the lake were rewritten too; null before the sweep, and if the organisation has no lake',
  },
  lake_done: { type: ['string', 'null'] },
};

const accessRequest = {
  access_request_id: uuid,
  state: { type: 'string', enum: ['pending', 'running', 'done', 'expired', 'cancelled'] },
  requested: instant,
  key_id: text,
  people: { type: 'integer', description: 'how many ids were sent' },
  records: {
    type: 'object',
    additionalProperties: { type: 'integer' },
    description: 'how many records of each type were collected',
  },
  started: { type: ['string', 'null'] },
  done: { type: ['string', 'null'] },
  expires: { type: ['string', 'null'], description: 'until when its records can be downloaded' },
};

export const answerSchemas: Readonly<Record<string, JsonSchema>> = {
  RecordType: { type: 'string', enum: uploadTypes },
  ProblemCode: { type: 'string', enum: problemCodes, description: 'why a record failed' },
  Counts: countsSchema,
  UploadAnswer: withOptional(
    closed({ request_id: { ...uuid, description: 'names the whole request' }, type, batches }),
    // This does not use `const`, because a Python client generator turns it into code that does not parse.
    {
      dry_run: { type: 'boolean', description: 'true in the answer to a dry run, else absent' },
      cleared: {
        type: 'object',
        additionalProperties: { type: 'integer', minimum: 1 },
        description:
          'only in the answer to a dry run: how many stored values would be lost, by field, also by records whose reference is missing',
      },
    },
  ),
  Accepted: closed({
    received: count,
    accepted: { ...count, description: 'how many are valid' },
    errors: { type: 'array', description: 'why the others are not', items: ref('RecordError') },
    warnings: { type: 'array', items: ref('Warning') },
  }),
  ReplayAnswer: closed({
    request_id: uuid,
    type: typeOrNull('null if there were records of several types, or of none'),
    batches,
    remaining: {
      type: ['integer', 'null'],
      description: 'how many matching rejections are left; null if they could not be counted',
    },
    next_cursor: {
      type: ['string', 'null'],
      description: 'where the next replay continues; null when every one that matches has been tried',
    },
  }),
  Receipt: closed({ ...receipt, batches }),
  ReceiptSummary: closed(receipt),
  Run: withOptional(closed(run), {
    reasons: {
      type: 'array',
      description:
        'only if a single run is read: why records of the run failed that are still kept as rejections, the most frequent first',
      items: closed({ type, code, field: { type: ['string', 'null'] }, count }),
    },
    links: { ...closed({ requests: text, rejections: text }), description: 'only if a single run is read' },
  }),
  RunSummary: closed(runSummary),
  RunPage: pageSchema('runs', 'RunSummary'),
  Erasure: closed(erasure),
  RequestedErasure: closed({
    ...erasure,
    unknown_customer_ids: { type: 'array', items: uuid, description: 'customers that are not stored' },
  }),
  CountedErasure: closed({
    dry_run: { type: 'boolean', description: 'always true' },
    mode: erasure.mode,
    people: erasure.people,
    known: { type: 'integer', description: 'how many customers of them are stored' },
    unknown_customer_ids: { type: 'array', items: uuid, description: 'customers that are not stored' },
    rows: {
      type: 'object',
      additionalProperties: { type: 'integer' },
      description:
        'how many rows of each table would be changed or deleted; `interactions_unlinked` are interactions of other ' +
        'students that would lose their `user_id`',
    },
    complete: {
      type: 'boolean',
      description: 'false if counting took too long; then there are at least as many rows',
    },
  }),
  ErasurePage: pageSchema('erasures', 'Erasure'),
  AccessRequest: closed(accessRequest),
  AccessRequestPage: pageSchema('access_requests', 'AccessRequest'),
  ErasureCertificate: closed({
    certificate: closed({
      service: text,
      organisation_id: uuid,
      erasure: ref('Erasure'),
      searched: { type: 'array', items: text },
      remains: { type: 'array', items: closed({ where: text, until: text }) },
      issued: instant,
    }),
    jws: { type: 'string', description: 'the same certificate, signed: RFC 7515, compact, EdDSA' },
  }),
  ReceiptPage: closed({
    requests: { type: 'array', items: ref('ReceiptSummary') },
    next_cursor: { type: ['string', 'null'], description: 'null on the last page' },
  }),
  DaysOfUploads: closed({
    days: {
      type: 'array',
      items: closed({
        day: { type: 'string', format: 'date' },
        uploads: closed({
          complete: { ...count, description: 'every record was stored' },
          partial: { ...count, description: 'some were' },
          failed: { ...count, description: 'none was' },
        }),
        records: counts,
      }),
    },
  }),
  Rejection: closed({
    rejection_id: uuid,
    type,
    request_id: uuid,
    index,
    id: { type: ['string', 'null'], description: "the record's id if it is a UUID" },
    rejected: instant,
    errors: {
      type: 'array',
      items: closed({ field: { type: ['string', 'null'] }, code, message: text }),
    },
    mode: {
      type: 'string',
      enum: modes,
      description: 'how a replay stores the record: as a whole, or only the fields that it has',
    },
    record: {
      description: `the record as it was sent, or as it would have been stored; null if it was larger than ${limits.recordBytesMax / 1024} KiB`,
    },
  }),
  RejectionPage: pageSchema('rejections', 'Rejection'),
  RejectionSummary: closed({
    rejections: {
      type: 'array',
      items: closed({
        type,
        code,
        field: { type: ['string', 'null'] },
        count,
        first_seen: instant,
        last_seen: instant,
        example: {
          oneOf: [
            closed({
              rejection_id: uuid,
              request_id: uuid,
              index,
              id: { type: ['string', 'null'] },
              message: text,
            }),
            { type: 'null' },
          ],
        },
      }),
    },
  }),
  Overview: closed({
    types: {
      type: 'array',
      items: closed({
        type,
        records: count,
        newest_updated: {
          ...instant,
          type: ['string', 'null'],
          description: 'the newest `updated` ever stored',
        },
        last_upload: { ...instant, type: ['string', 'null'] },
        open_rejections: count,
      }),
    },
  }),
  Change: closed({
    cursor: { ...text, description: 'continues after this change' },
    type,
    id: uuid,
    deleted: { type: 'boolean', description: 'whether the record is marked as deleted, or no longer stored' },
    erased: { type: 'boolean', description: 'whether the record was removed because its person was erased' },
    record: {
      type: ['object', 'null'],
      description: 'the current record, as reading it back returns it; null if it is no longer stored',
    },
  }),
  Expiry: closed({
    cursor: { ...text, description: 'continues after this entry' },
    type,
    expired_before: {
      ...instant,
      description: 'everything of the type that was received before is gone: remove it from a copy',
    },
  }),
  ChangePage: closed({
    changes: { type: 'array', items: { oneOf: [ref('Change'), ref('Expiry')] } },
    next_cursor: { ...text, description: 'continues after this page' },
    has_more: { type: 'boolean', description: 'false if everything that is stored has been read' },
  }),
  RecommendationsReport: closed({
    from: day,
    to: day,
    window: { type: 'string', enum: windowNames },
    group_by: { type: 'string', enum: groupings },
    as_of: {
      ...instant,
      type: ['string', 'null'],
      description:
        'everything stored before is counted; null while older data is still being counted for the first time',
    },
    correlation: text,
    definitions: {
      type: 'object',
      additionalProperties: text,
      description: 'of the figures, in a sentence each',
    },
    total: bothFigures,
    all: closed({ transactions: count, revenue: sum, savings: sum }),
    unusable: closed({ service_without_recommendation: count, recommendation_without_service: count }),
    groups: {
      type: 'array',
      description: 'in the order of their keys',
      items: withOptional(bothFigures, {
        group: {
          type: 'object',
          description: 'what `group_by` names; an item has `item_type` and `item_id`',
          properties: {
            day,
            item_type: text,
            item_id: uuid,
            platform: { type: ['string', 'null'] },
            country: { type: ['string', 'null'] },
            recommendation_id: uuid,
          },
        },
      }),
    },
    next_cursor: { type: ['string', 'null'], description: 'null on the last page' },
  }),
  RecommendationsFigures: figures,
  BatchAnswer: closed({
    batch: { type: 'integer', minimum: 1 },
    status: { type: 'integer', enum: [200, 207, 400, 500] },
    data: withOptional(
      closed({
        status: { type: 'string', enum: ['success', 'partial', 'error'] },
        type,
        message: text,
        request_id: uuid,
        batch_id: uuid,
        error: { type: ['string', 'null'], description: 'for people: how many failed, and the first few' },
        counts,
        errors: {
          type: 'array',
          description: `for programs: every failed record, with up to ${limits.errorsPerRecordMax} wrong fields each`,
          items: ref('RecordError'),
        },
        stale: {
          type: 'array',
          description: 'records older than the stored ones; skipped, not failed',
          items: index,
        },
        warnings: { type: 'array', items: ref('Warning') },
      }),
      {
        interaction_ids: {
          type: 'array',
          description:
            'in a batch of interactions that is stored: the id of each in the order sent, null for one that failed',
          items: { ...uuid, type: ['string', 'null'] },
        },
      },
    ),
  }),
  RecordError: closed({
    index,
    id: { type: ['string', 'null'], description: "the record's id if it is a UUID" },
    field: { type: ['string', 'null'] },
    code: { type: 'string', enum: [...problemCodes, 'not_stored', 'outcome_unknown', 'run_ended'] },
    message: text,
  }),
  Warning: closed({
    code: {
      type: 'string',
      enum: ['unknown_field', 'more_unknown_fields', 'updated_in_future', 'repeated_id'],
    },
    field: { type: ['string', 'null'] },
    count,
    message: text,
  }),
};
