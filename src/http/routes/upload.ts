import { RequestError, retryAfter } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { flag, type Mode, modes, oneOf, optional } from '../../registry/fields.ts';
import { interactionExample } from '../../registry/interaction.ts';
import {
  idFieldOf,
  type ResourceType,
  referencesOf,
  resources,
  resourceTypes,
} from '../../registry/resources.ts';
import type { UploadType } from '../../registry/upload-types.ts';
import { overallStatus, sumCounts, type WrittenBatch } from '../../uploads/answer/answer.ts';
import { dryRun } from '../../uploads/dry-run.ts';
import type { CheckedBatch } from '../../uploads/read/batch-builder.ts';
import type { Progress } from '../../uploads/store/commit-batch.ts';
import { ingestRequest } from '../../uploads/store/commit-batch.ts';
import { isKeyHeld } from '../../uploads/store/upload-idempotency-keys.ts';
import { acceptedAnswer, inSteps, refuseForVisitors } from '../gate.ts';
import { isJsonLines } from '../operation/accept.ts';
import { keyReused, notFound, runEnded } from '../operation/described-answers.ts';
import {
  idempotencyKeyHeader,
  idempotencyReplayed,
  readIdempotencyKey,
} from '../operation/idempotency-key.ts';
import {
  type Answer,
  type Call,
  type DescribedAnswer,
  type Operation,
  type Parts,
  principalOf,
} from '../operation/operation.ts';
import { runParameters, runPartOf } from '../operation/run-part.ts';
import { changesSchemaName, schemaName } from '../operation/stored-records.ts';

const answer = { schema: { $ref: '#/components/schemas/UploadAnswer' } };
const answerOrError = { schema: { oneOf: [answer.schema, { $ref: '#/components/schemas/Error' }] } };

const uploadAnswers: Operation['answers'] = {
  200: {
    sharedAs: 'Uploaded',
    description: 'No record failed. The example shows the answer to an upload of shops.',
    ...answer,
    canBeReplayed: true,
    hasQuota: true,
  },
  207: {
    sharedAs: 'UploadedInPart',
    description:
      'Some records or batches failed; the others are stored. The example shows the answer to an upload of shops.',
    ...answer,
    canBeReplayed: true,
    hasQuota: true,
  },
  400: {
    sharedAs: 'UploadFailed',
    description: 'Every record failed, or the request as a whole did.',
    ...answerOrError,
    canBeReplayed: true,
    hasQuota: true,
  },
  404: notFound,
  409: runEnded,
  422: keyReused,
  500: {
    sharedAs: 'UploadNotStored',
    description: 'No batch is known to be stored, because of a problem on our side; send the request again.',
    ...answerOrError,
    hasQuota: true,
  },
};

export const aboutBrowserKeys =
  'Pages of other origins may send it with a browser key. The answer is then 202 and depends on the body alone, never on ' +
  'what is stored. OPTIONS answers preflights, for any origin.';

export const acceptedFromBrowser: DescribedAnswer = {
  sharedAs: 'Accepted',
  description:
    'With a browser key: valid data is stored, or kept as a rejection if a reference is missing; the answer does not ' +
    'show which.',
  schema: { $ref: '#/components/schemas/Accepted' },
};

const interactionsAnswers: Operation['answers'] = {
  ...uploadAnswers,
  202: acceptedFromBrowser,
  400: {
    sharedAs: 'InteractionsFailed',
    description: 'Every interaction failed, or the request as a whole did.',
    schema: { oneOf: [...answerOrError.schema.oneOf, acceptedFromBrowser.schema] },
    canBeReplayed: true,
    hasQuota: true,
  },
};

const uploadMode = optional(
  oneOf(modes, {
    description:
      'how a record is stored over the one with the same id: `replace` (the default) as a whole; with `merge`, a field that ' +
      'is left out keeps its stored value, and null clears it',
  }),
);

/** Each record type has its own schema, permission and example. */
export const uploadOperations: readonly Operation[] = resourceTypes.map((type) => {
  const recordsMax = type === 'courses' ? limits.coursesPerRequestMax : limits.recordsPerRequestMax;
  return uploadOperation(type, recordsMax, {
    path: `/v1/data/${type}`,
    tag: 'Upload',
    description: describe(type, recordsMax),
    permission: `data:write:${type}`,
    schema: schemaName(type),
    changesSchema: changesSchemaName(type),
    example: resources[type].example,
  });
});

export const uploadInteractions: Operation = uploadOperation('interactions', limits.recordsPerRequestMax, {
  path: '/user-interactions/batch',
  tag: 'Interactions',
  description:
    `Stores up to ${limits.recordsPerRequestMax.toLocaleString('en')} interactions. They are answered like an upload, ` +
    'with a receipt, and `interaction_ids` has the id of each in the order sent. An interaction that is invalid, or ' +
    'whose item or student does not exist, is kept as a rejection. Send an `Idempotency-Key`: an interaction has no id ' +
    'before it is stored, so without a key a retry stores it a second time. The interactions of a batch count towards ' +
    'the limit of interactions per second, and the batch does not count as a request.\n\n' +
    `${inLines('interactions')}\n\n${aboutBrowserKeys} A batch has at most ` +
    `${limits.recordsPerBatch.toLocaleString('en')} interactions, and invalid ones are not kept.`,
  permission: 'interactions:write',
  isForBrowsers: true,
  schema: 'NewInteraction',
  example: interactionExample,
});

interface AboutUpload
  extends Pick<Operation, 'path' | 'tag' | 'description' | 'permission' | 'isForBrowsers'> {
  readonly schema: string;
  readonly changesSchema?: string;
  readonly example: object;
}

function uploadOperation(
  type: UploadType,
  recordsMax: number,
  { path, tag, description, permission, isForBrowsers, schema, changesSchema, example }: AboutUpload,
): Operation {
  const schemas = [schema, ...(changesSchema ? [changesSchema] : [])].map((name) => ({
    $ref: `#/components/schemas/${name}`,
  }));
  return {
    id: `upload-${type}`,
    method: 'POST',
    path,
    tag,
    summary: `Upload ${type.replaceAll('-', ' ')}`,
    description,
    permission,
    ...(isForBrowsers && { isForBrowsers }),
    storesRecords: true,
    query: {
      dry_run: optional(
        flag({
          description: 'validate only; nothing is stored',
          // The reference page prefills the form with this example, so trying out the operation stores nothing.
          examples: [true],
        }),
      ),
      ...(type !== 'interactions' && { mode: uploadMode }),
      ...runParameters,
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
            items: schemas.length === 1 ? schemas[0] : { anyOf: schemas },
          },
        },
      },
      example: { records: [example] },
      takesLines: true,
    },
    answers: isForBrowsers ? interactionsAnswers : uploadAnswers,
    handle: (call, parts) =>
      call.principal?.visitor === undefined ? upload(type, call, parts) : uploadFromBrowser(call, parts),
  };
}

/** The body has been read and counted, but not stored yet. */
interface Received extends Pick<Progress, 'mode' | 'run' | 'idempotency' | 'startedMs'> {
  readonly type: UploadType;
  readonly batches: readonly CheckedBatch[];
}

/** Uploads that have already started can still be replayed or finished. */
async function refuseNew(call: Call, { pool }: Parts): Promise<void> {
  if (!call.overQuota) return;
  const { organisationId } = principalOf(call);
  const key = readIdempotencyKey(call);
  const isBegun = key !== undefined && (await isKeyHeld(pool.atOwner(organisationId), organisationId, key));
  if (!isBegun) throw call.overQuota;
}

async function receive(type: UploadType, call: Call, parts: Parts): Promise<Received> {
  const { config, checker, requestLimits } = parts;
  const startedMs = performance.now();
  const principal = principalOf(call);
  const run = runPartOf(call);
  await refuseNew(call, parts);
  const typeMax = type === 'courses' ? limits.coursesPerRequestMax : Number.POSITIVE_INFINITY;
  const max = Math.min(config.recordsPerRequestMax, typeMax);
  const mode = (call.query.mode ?? 'replace') as Mode;
  const key = readIdempotencyKey(call);
  const unchecked = {
    organisationId: principal.organisationId,
    type,
    mode,
    body: call.body,
    recordsMax: principal.visitor === undefined ? max : Math.min(max, limits.recordsPerBatch),
    isLines: isJsonLines(call.headers['content-type']),
    wantsHash: key !== undefined,
  };
  const { batches, bodySha256 } = await call.step('read records', () => checker.check(unchecked));
  const received = batches.reduce((sum, batch) => sum + batch.received, 0);
  const isInteractions = type === 'interactions';
  // The gate has already counted this batch as one interaction.
  const counted = isInteractions
    ? requestLimits.count('interactions', principal, received - 1, 1)
    : requestLimits.count('records', principal, received);
  call.tellLimit(await counted);
  const failed = batches.reduce((sum, batch) => sum + batch.failed.length, 0);
  const idBytes = isInteractions ? received * limits.answerBytesPerInteraction : 0;
  call.reserve(failed * limits.answerBytesPerFailedRecord + idBytes);
  const idempotency = key !== undefined && bodySha256 ? { key, bodySha256 } : undefined;
  return { type, mode: isInteractions ? null : mode, run, batches, idempotency, startedMs };
}

async function upload(type: UploadType, call: Call, parts: Parts): Promise<Answer> {
  // Read now, because a large body is later transferred to a worker thread.
  const bodyBytes = call.body?.length ?? 0;
  const received = await receive(type, call, parts);
  if (call.query.dry_run === true) {
    const { organisationId } = principalOf(call);
    const { idempotency, batches } = received;
    const rehearsal = {
      organisationId,
      requestId: call.requestId,
      type,
      idempotency,
      references: parts.references,
    };
    const body = await dryRun(parts.pool.atOwner(organisationId), rehearsal, batches);
    const counts = sumCounts(body.batches.map(({ data }) => data));
    return { status: overallStatus(body.batches), body, counts };
  }
  const { stored, requestId } = await store(received, bodyBytes, call, parts);
  const head = JSON.stringify({ request_id: requestId, type });
  const body = `${head.slice(0, -1)},"batches":[${stored.map(({ text }) => text).join(',')}]}`;
  const unfinished = stored.some(({ status }) => status === 500);
  const isRepeated = stored.every((batch) => batch.isRepeated);
  const headers = { ...(unfinished && retryAfter), ...(isRepeated && idempotencyReplayed) };
  return { status: overallStatus(stored), body, headers, counts: sumCounts(stored) };
}

async function store(
  { type, mode, run, batches, idempotency, startedMs }: Received,
  bodyBytes: number,
  call: Call,
  parts: Parts,
): Promise<{ stored: readonly WrittenBatch[]; requestId: string }> {
  const { organisationId, keyId, visitor } = principalOf(call);
  const progress: Progress = {
    organisationId,
    keyId,
    type,
    mode,
    run,
    bodyBytes,
    batchCount: batches.length,
    startedMs,
    idempotency,
    references: parts.references,
    isFromBrowser: visitor !== undefined,
    requestId: call.requestId,
  };
  const affected = parts.pool.ownerOf(organisationId) === undefined ? [organisationId] : [];
  const stored = await ingestRequest(parts.pool.atOwner(organisationId), progress, batches, {
    watch: (commit) => parts.uploadsStall.run(affected, commit),
    step: call.step,
    onStored: (durationMs) => parts.metrics?.batchStored(durationMs),
    onError: (error) => call.log.error({ err: error }, 'a batch was not stored'),
  });
  return { stored, requestId: progress.requestId };
}

/** Stores the batch in one transaction, and reports only errors in the body itself. */
function uploadFromBrowser(call: Call, parts: Parts): Promise<Answer> {
  return inSteps(async () => {
    refuseForVisitors(call);
    const bodyBytes = call.body?.length ?? 0;
    const received = await receive('interactions', call, parts);
    const errors = received.batches.flatMap(({ failed }) =>
      failed.flatMap(({ index, id, problems }) =>
        problems.map(({ field, code, message }) => ({ index, id, field, code, message })),
      ),
    );
    const answer = acceptedAnswer({
      received: received.batches.reduce((sum, batch) => sum + batch.received, 0),
      errors,
      warnings: received.batches.flatMap(({ warnings }) => warnings),
    });
    if (answer.status === 400) return answer;
    const { stored } = await store(received, bodyBytes, call, parts);
    if (stored.some(({ status }) => status === 500)) throw new RequestError('outcome_unknown');
    return { ...answer, counts: sumCounts(stored) };
  });
}

function describe(type: ResourceType, recordsMax: number): string {
  const references = referencesOf(type).map((reference) => `\`${reference.field}\` (\`${reference.type}\`)`);
  const first =
    references.length > 0 ? ` The records they refer to must exist: ${references.join(', ')}.` : '';
  return (
    `Stores up to ${recordsMax.toLocaleString('en')} records. A valid record replaces the stored one with the same ` +
    `\`${idFieldOf(type)}\` as a whole or, with \`mode=merge\`, the fields that it has.${first} Sending the same again ` +
    'changes nothing.\n\n' +
    inLines('records')
  );
}

function inLines(what: string): string {
  return `The ${what} may also be sent one per line, with nothing around them and with \`Content-Type: application/x-ndjson\`.`;
}
