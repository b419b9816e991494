import { retryAfter } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { flag, optional, required } from '../../registry/fields.ts';
import { interactionExample } from '../../registry/interaction.ts';
import {
  idFieldOf,
  type ResourceType,
  referencesOf,
  resources,
  resourceTypes,
} from '../../registry/resources.ts';
import type { UploadType } from '../../registry/upload-types.ts';
import { batchAnswer, overallStatus, sumCounts, type UploadAnswer } from '../../uploads/answer.ts';
import { dryRun } from '../../uploads/dry-run.ts';
import { ingestRequest } from '../../uploads/ingest-request.ts';
import { created, failed, type Outcome } from '../../uploads/outcome.ts';
import type { Progress } from '../../uploads/store/commit-batch.ts';
import { isJsonLines } from '../accept.ts';
import { idempotencyKeyHeader, idempotencyReplayed, readIdempotencyKey } from '../idempotency-key.ts';
import { keyReused } from '../openapi-responses.ts';
import { type Answer, type Call, type Operation, type Parts, principalOf } from '../operation.ts';

const answer = { schema: { $ref: '#/components/schemas/UploadAnswer' } };
const answerOrError = { schema: { oneOf: [answer.schema, { $ref: '#/components/schemas/Error' }] } };

/** Shared by all types; the examples are shops. */
const uploadAnswers: Operation['answers'] = {
  200: {
    sharedAs: 'Uploaded',
    description: 'No record failed.',
    ...answer,
    example: exampleAnswer([created]),
    canBeReplayed: true,
  },
  207: {
    sharedAs: 'UploadedInPart',
    description: 'Some records or batches failed; the others are stored.',
    ...answer,
    example: exampleAnswer([created, failed(null, [{ field: idFieldOf('shops'), ...required }])]),
    canBeReplayed: true,
  },
  400: {
    sharedAs: 'UploadFailed',
    description: 'Every record failed, or the request as a whole did.',
    ...answerOrError,
    canBeReplayed: true,
  },
  422: keyReused,
  500: {
    sharedAs: 'UploadNotStored',
    description: 'No batch is known to be stored, through no fault of the data; send the request again.',
    ...answerOrError,
  },
};

/** One upload operation per record type: each has its own shape, permission and example. */
export const uploadOperations: readonly Operation[] = resourceTypes.map((type) => {
  const recordsMax = type === 'courses' ? limits.coursesPerRequestMax : limits.recordsPerRequestMax;
  return uploadOperation(type, recordsMax, {
    path: `/v1/data/${type}`,
    tag: 'Upload',
    description: describe(type, recordsMax),
    permission: `data:write:${type}`,
    schema: schemaName(type),
    example: resources[type].example,
  });
});

/** Interactions have their own address and permission. */
export const uploadInteractions: Operation = uploadOperation('interactions', limits.recordsPerRequestMax, {
  path: '/user-interactions/batch',
  tag: 'Interactions',
  description:
    `Stores up to ${limits.recordsPerRequestMax.toLocaleString('en')} interactions. They are answered like an upload, ` +
    'with a receipt, and `interaction_ids` has the id of each in the order sent. One that is invalid, or whose item or ' +
    'student does not exist, is kept as a rejection. Send an `Idempotency-Key`: an interaction has no id before it is ' +
    'stored, so without a key a retry stores it a second time. The batch counts as its interactions against the limit of ' +
    'interactions a second, and not as a request.\n\n' +
    `${inLines('interactions')}`,
  permission: 'interactions:write',
  schema: 'NewInteraction',
  example: interactionExample,
});

interface AboutUpload extends Pick<Operation, 'path' | 'tag' | 'description' | 'permission'> {
  readonly schema: string;
  readonly example: object;
}

function uploadOperation(
  type: UploadType,
  recordsMax: number,
  { path, tag, description, permission, schema, example }: AboutUpload,
): Operation {
  return {
    id: `upload-${type}`,
    method: 'POST',
    path,
    tag,
    summary: `Upload ${type.replaceAll('-', ' ')}`,
    description,
    permission,
    query: {
      dry_run: optional(
        flag({
          description: 'validate only; nothing is stored',
          // The reference page prefills the example, so trying it out stores nothing.
          examples: [true],
        }),
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
            items: { $ref: `#/components/schemas/${schema}` },
          },
        },
      },
      example: { records: [example] },
      takesLines: true,
    },
    answers: uploadAnswers,
    handle: (call, parts) => upload(type, call, parts),
  };
}

async function upload(type: UploadType, call: Call, parts: Parts): Promise<Answer> {
  const startedMs = performance.now();
  const { config, checker, requestLimits, metrics, writer: references } = parts;
  const principal = principalOf(call);
  const { organisationId, keyId } = principal;
  const pool = parts.pool.atOwner(organisationId);
  const { requestId } = call;
  const max = type === 'courses' ? config.coursesPerRequestMax : config.recordsPerRequestMax;
  const isDryRun = call.query.dry_run === true;
  const key = readIdempotencyKey(call);
  const bodyBytes = call.body?.length ?? 0;
  const unchecked = {
    organisationId,
    type,
    body: call.body,
    recordsMax: max,
    isLines: isJsonLines(call.headers['content-type']),
    wantsHash: key !== undefined,
  };
  const { batches, bodySha256 } = await call.step('read records', () => checker.check(unchecked));
  const received = batches.reduce((sum, batch) => sum + batch.received, 0);
  const isInteractions = type === 'interactions';
  // The gate has counted a batch of interactions as one.
  const counted = isInteractions
    ? requestLimits.count('interactions', principal, received - 1, 1)
    : requestLimits.count('records', principal, received);
  call.tellLimit(await counted);
  const failed = batches.reduce((sum, batch) => sum + batch.failed.length, 0);
  const idBytes = isInteractions ? received * limits.answerBytesPerInteraction : 0;
  call.reserve(failed * limits.answerBytesPerFailedRecord + idBytes);
  const idempotency = key !== undefined && bodySha256 ? { key, bodySha256 } : undefined;
  if (isDryRun) {
    const rehearsal = { organisationId, requestId, type, idempotency, references };
    const body = await dryRun(pool, rehearsal, batches);
    const counts = sumCounts(body.batches.map(({ data }) => data));
    return { status: overallStatus(body.batches), body, counts };
  }
  const progress: Progress = {
    organisationId,
    keyId,
    type,
    bodyBytes,
    batchCount: batches.length,
    startedMs,
    idempotency,
    references,
    requestId,
  };
  const stored = await ingestRequest(pool, progress, batches, {
    stallWatch: parts.uploadsStall,
    step: call.step,
    onStored: (durationMs) => metrics?.batchStored(durationMs),
    onError: (error) => call.log.error({ err: error }, 'a batch was not stored'),
  });
  const head = JSON.stringify({ request_id: progress.requestId, type });
  const body = `${head.slice(0, -1)},"batches":[${stored.map(({ text }) => text).join(',')}]}`;
  const unfinished = stored.some(({ status }) => status === 500);
  const isRepeated = stored.every((batch) => batch.isRepeated);
  const headers = { ...(unfinished && retryAfter), ...(isRepeated && idempotencyReplayed) };
  return { status: overallStatus(stored), body, headers, counts: sumCounts(stored) };
}

function describe(type: ResourceType, recordsMax: number): string {
  const references = referencesOf(type).map((reference) => `\`${reference.field}\` (\`${reference.type}\`)`);
  const first =
    references.length > 0 ? ` The records they refer to must exist: ${references.join(', ')}.` : '';
  return (
    `Stores up to ${recordsMax.toLocaleString('en')} records. A valid record replaces the stored one with the same ` +
    `\`${idFieldOf(type)}\` as a whole.${first} Sending the same again changes nothing.\n\n` +
    inLines('records')
  );
}

function inLines(what: string): string {
  return `The ${what} may also be sent one a line, with \`Content-Type: application/x-ndjson\` and nothing around them.`;
}

/** `shop-categories` becomes `ShopCategory`. */
export function schemaName(type: ResourceType): string {
  return resources[type].singular
    .split(' ')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

/** Built by the code that builds real answers, so the reference cannot drift from them. */
function exampleAnswer(outcomes: readonly Outcome[]): UploadAnswer {
  const type = 'shops';
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
