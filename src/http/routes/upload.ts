import { retryAfter } from '../../errors.ts';
import { batchAnswer, overallStatus, type UploadAnswer } from '../../ingest/answer.ts';
import type { Progress } from '../../ingest/commit-batch.ts';
import { dryRun } from '../../ingest/dry-run.ts';
import { ingestRequest } from '../../ingest/ingest-request.ts';
import { created, failed, type Outcome } from '../../ingest/outcome.ts';
import { limits } from '../../limits.ts';
import { flag, optional, required } from '../../registry/fields.ts';
import {
  idFieldOf,
  type ResourceType,
  referencesOf,
  resources,
  resourceTypes,
} from '../../registry/resources.ts';
import { idempotencyKeyHeader, readIdempotencyKey } from '../idempotency-key.ts';
import { type Answer, type Call, type Operation, type Parts, principalOf } from '../operation.ts';

/** One upload operation per record type: each has its own shape, permission and example. */
export const uploadOperations: readonly Operation[] = resourceTypes.map(uploadOperation);

function uploadOperation(type: ResourceType): Operation {
  const recordsMax = type === 'courses' ? limits.coursesPerRequestMax : limits.recordsPerRequestMax;
  const answer = { schema: { $ref: '#/components/schemas/UploadAnswer' } };
  return {
    id: `upload-${type}`,
    method: 'POST',
    path: `/v1/data/${type}`,
    tag: 'Upload',
    summary: `Upload ${type.replaceAll('-', ' ')}`,
    description: describe(type, recordsMax),
    permission: `data:write:${type}`,
    query: {
      dry_run: optional(
        flag({ description: 'check everything, store nothing, and answer as if it had been stored' }),
      ),
    },
    requestHeaders: idempotencyKeyHeader,
    requestBody: {
      schema: {
        type: 'object',
        required: ['records'],
        properties: {
          records: {
            type: 'array',
            minItems: 1,
            maxItems: recordsMax,
            items: { $ref: `#/components/schemas/${schemaName(type)}` },
          },
        },
      },
      example: { records: [resources[type].example] },
    },
    answers: {
      200: { description: 'No record failed.', ...answer, example: exampleAnswer(type, [created]) },
      207: {
        description: 'Some records failed or some batches did; the others are stored.',
        ...answer,
        example: exampleAnswer(type, [created, failed(null, [{ field: idFieldOf(type), ...required }])]),
      },
      400: {
        description: 'Every record failed, or the request as a whole cannot be taken.',
        schema: { oneOf: [answer.schema, { $ref: '#/components/schemas/Error' }] },
      },
      422: {
        description: 'The `Idempotency-Key` was used with another body.',
        schema: { $ref: '#/components/schemas/Error' },
      },
      500: {
        description:
          'No batch is known to be stored, for a reason that is not the data; send the request again.',
        schema: { oneOf: [answer.schema, { $ref: '#/components/schemas/Error' }] },
      },
    },
    handle: (call, parts) => upload(type, call, parts),
  };
}

async function upload(type: ResourceType, call: Call, parts: Parts): Promise<Answer> {
  const startedMs = performance.now();
  const { config, pool, checker, requestLimits } = parts;
  const principal = principalOf(call);
  const { organisationId, keyId } = principal;
  const { requestId } = call;
  const max = type === 'courses' ? config.coursesPerRequestMax : config.recordsPerRequestMax;
  const isDryRun = call.query.dry_run === true;
  const key = isDryRun ? undefined : readIdempotencyKey(call);
  const bodyBytes = call.body?.length ?? 0;
  const { batches, bodySha256 } = await checker.check(type, call.body, max, key !== undefined);
  const received = batches.reduce((sum, batch) => sum + batch.received, 0);
  call.tellLimit(await requestLimits.count('records', principal, received));
  if (isDryRun) {
    const body = await dryRun(pool, { organisationId, requestId, type }, batches);
    return { status: overallStatus(body.batches), body };
  }
  const progress: Progress = {
    organisationId,
    keyId,
    type,
    bodyBytes,
    batchCount: batches.length,
    startedMs,
    idempotency: key !== undefined && bodySha256 ? { key, bodySha256 } : undefined,
    requestId,
  };
  const body = await ingestRequest(pool, progress, batches, (error) =>
    call.log.error({ err: error }, 'a batch was not stored'),
  );
  const unfinished = body.batches.some(({ status }) => status === 500);
  return { status: overallStatus(body.batches), body, ...(unfinished && { headers: retryAfter }) };
}

function describe(type: ResourceType, recordsMax: number): string {
  const references = referencesOf(type).map((reference) => `\`${reference.field}\` (\`${reference.type}\`)`);
  const first =
    references.length > 0 ? ` What they refer to must exist already: ${references.join(', ')}.` : '';
  return (
    `Takes up to ${recordsMax.toLocaleString('en')} records and stores each that is sound, replacing one with the same ` +
    `\`${idFieldOf(type)}\` as a whole.${first} Sending the same again changes nothing.`
  );
}

/** Made by what makes the real ones, so that the reference shows what is really answered. */
function exampleAnswer(type: ResourceType, outcomes: readonly Outcome[]): UploadAnswer {
  const requestId = '019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f';
  const batch = batchAnswer({
    number: 1,
    batchId: '019ced6c-5a31-7f10-9a2b-3c4d5e6f7a8b',
    requestId,
    type,
    start: 0,
    outcomes,
    warnings: [],
    broken: undefined,
  });
  return { request_id: requestId, type, batches: [batch] };
}

/** `shop-categories` is `ShopCategory` among the schemas. */
export function schemaName(type: ResourceType): string {
  return resources[type].singular
    .split(' ')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}
