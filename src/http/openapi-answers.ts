import { limits } from '../limits.ts';
import { problemCodes } from '../registry/fields.ts';
import { resourceTypes } from '../registry/resources.ts';
import type { JsonSchema } from './operation.ts';

const count = { type: 'integer', minimum: 0 };
const index = { type: 'integer', minimum: 0, description: "counts from 0 in the request's own `records`" };
const text = { type: 'string' };
const uuid = { type: 'string', format: 'uuid' };

function closed(properties: Record<string, unknown>): JsonSchema {
  return { type: 'object', required: Object.keys(properties), properties };
}

/** What the service answers, as schemas: uploads, warnings and errors. */
export const answerSchemas: Readonly<Record<string, JsonSchema>> = {
  UploadAnswer: closed({
    request_id: { ...uuid, description: 'names the whole request' },
    type: { type: 'string', enum: resourceTypes },
    batches: {
      type: 'array',
      description: `one result per ${limits.recordsPerBatch.toLocaleString('en')} records, in the order sent; each is stored by itself`,
      items: { $ref: '#/components/schemas/BatchAnswer' },
    },
  }),
  BatchAnswer: closed({
    batch: { type: 'integer', minimum: 1 },
    status: { type: 'integer', enum: [200, 207, 400, 500] },
    data: closed({
      status: { type: 'string', enum: ['success', 'partial', 'error'] },
      type: { type: 'string', enum: resourceTypes },
      message: text,
      request_id: uuid,
      batch_id: uuid,
      error: { type: ['string', 'null'], description: 'for people: how many failed, and the first few' },
      counts: closed({
        received: count,
        created: count,
        updated: count,
        unchanged: count,
        stale: count,
        failed: count,
      }),
      errors: {
        type: 'array',
        description: `for programs: every failed record, with up to ${limits.errorsPerRecordMax} bad fields each`,
        items: { $ref: '#/components/schemas/RecordError' },
      },
      stale: {
        type: 'array',
        description: 'records older than what is stored; skipped, not failed',
        items: index,
      },
      warnings: { type: 'array', items: { $ref: '#/components/schemas/Warning' } },
    }),
  }),
  RecordError: closed({
    index,
    id: { type: ['string', 'null'], description: "the record's id where it is a UUID" },
    field: { type: ['string', 'null'] },
    code: { type: 'string', enum: [...problemCodes, 'not_stored', 'outcome_unknown'] },
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
  Error: {
    type: 'object',
    required: ['error', 'message'],
    properties: {
      error: { type: 'string', description: "the status's reason phrase" },
      message: { type: 'string', description: 'what to do' },
      details: { type: 'array', items: closed({ field: text, code: text, message: text }) },
    },
  },
};
