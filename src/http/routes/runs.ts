import { RequestError } from '../../errors.ts';
import { lacksPermission, permits, uploadPermission } from '../../keys/permissions.ts';
import { limits } from '../../limits.ts';
import type { Pool } from '../../postgres/pool.ts';
import { type Field, isProblem, isUuid, text, uuid } from '../../registry/fields.ts';
import { type UploadType, uploadTypes } from '../../registry/upload-types.ts';
import { rejectionSummary } from '../../rejections/find-rejections.ts';
import { failedRequestsOf } from '../../runs/enter-run.ts';
import { findRun, type RunFile, readRun, runFilters, runPage, type Unseen } from '../../runs/find-runs.ts';
import { runLimits } from '../../runs/limits.ts';
import { endRun, noteHeartbeat, openRun } from '../../runs/open-run.ts';
import { type BodyField, bodySchema, readFields, refuse } from '../operation/body.ts';
import {
  described,
  keyReused,
  notFound,
  onePage,
  refused,
  runEnded,
} from '../operation/described-answers.ts';
import { idempotencyReplayed, readIdempotencyKey } from '../operation/idempotency-key.ts';
import {
  type Call,
  type DescribedAnswer,
  type Operation,
  ownOf,
  type Parts,
  principalOf,
} from '../operation/operation.ts';

const tag = 'Runs';
const permission = 'data:write';
const pathParameters = { run_id: uuid({ description: 'the id of the run' }) };

/** 200 if an earlier request has opened it. */
const runAnswer: DescribedAnswer = { sharedAs: 'RunAnswer', ...described('The run.', 'Run') };

const aboutPermissions =
  'A key that may only upload some types can use it for runs with files of these types.';

/** Like the fields of records, but in a body of a fixed shape. */
function fieldOf({ schema, read }: Field): BodyField<string> {
  return {
    schema,
    read(value) {
      if (value === '') return refuse('required', 'must not be empty');
      const result = read(value);
      return isProblem(result) ? refuse(result.code, result.message) : String(result);
    },
  };
}

const wholeMax = 999_999_999_999_999;

function wholeField(description: string): BodyField<number> {
  return {
    schema: { type: 'integer', minimum: 0, maximum: wholeMax, description },
    read: (value) =>
      Number.isInteger(value) && Number(value) >= 0 && Number(value) <= wholeMax
        ? Number(value)
        : refuse('out_of_range', `must be a whole number from 0 to ${wholeMax}`),
  };
}

const baseName = fieldOf(text({ codePointsMax: runLimits.fileNameCodePointsMax }));

const fileFields = {
  name: {
    schema: { ...baseName.schema, description: 'the base name, without folders' },
    required: true,
    read: (value) =>
      typeof value === 'string' && /[/\\]/.test(value)
        ? refuse('invalid_value', 'must be a base name, without folders')
        : baseName.read(value),
  },
  bytes: { ...wholeField('the size of the file'), required: true },
  sha256: {
    schema: { type: 'string', pattern: '^[0-9a-f]{64}$', description: 'the SHA-256 of its bytes' },
    required: true,
    read: (value) =>
      typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)
        ? value
        : refuse('invalid_format', 'must be 64 hexadecimal digits in lower case'),
  },
  type: {
    schema: { type: 'string', enum: uploadTypes, description: 'the type of its records' },
    required: true,
    read: (value) =>
      uploadTypes.find((type) => type === value) ??
      refuse('invalid_value', `must be one of ${uploadTypes.join(', ')}`),
  },
} satisfies Record<string, BodyField>;

const unseenFields = {
  file: { ...wholeField('the index of the file, from 0'), required: true },
  not_sent: { ...wholeField('records that were not sent'), required: true },
  not_kept: { ...wholeField('records that were sent and not kept'), required: true },
} satisfies Record<string, BodyField>;

/** `problemOf` compares the elements. */
function listOf<T>(
  fields: Record<string, BodyField>,
  minItems: number,
  problemOf: (list: readonly T[]) => string | undefined,
): BodyField<readonly T[]> {
  return {
    schema: { type: 'array', minItems, maxItems: runLimits.filesMax, items: bodySchema(fields) },
    read(value) {
      if (!Array.isArray(value)) return refuse('wrong_type', 'must be an array');
      if (value.length < minItems) return refuse('required', 'must contain at least one file');
      if (value.length > runLimits.filesMax)
        return refuse('too_large', `has more than ${runLimits.filesMax} files; open several runs`);
      const list: T[] = [];
      for (const [index, element] of value.entries()) {
        const read = elementOf<T>(fields, element);
        if (typeof read === 'string') return refuse('invalid_value', `has an element ${index} that ${read}`);
        list.push(read.element);
      }
      const problem = problemOf(list);
      return problem === undefined ? list : refuse('invalid_value', problem);
    },
  };
}

/** Returns what is wrong with the element as a string. */
function elementOf<T>(fields: Record<string, BodyField>, element: unknown): string | { readonly element: T } {
  try {
    return { element: readFields(fields, Buffer.from(JSON.stringify(element)), false) as T };
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    const [detail] = error.details ?? [];
    if (!detail) return 'is not an object';
    return detail.field === 'body' ? detail.message : `has a wrong ${detail.field}: it ${detail.message}`;
  }
}

function repeated<T>(list: readonly T[], keyOf: (one: T) => unknown): boolean {
  return new Set(list.map(keyOf)).size < list.length;
}

const openFields = {
  name: {
    ...fieldOf(
      text({
        codePointsMax: runLimits.nameCodePointsMax,
        description: 'what the runs of an export have in common',
      }),
    ),
    required: true,
  },
  client_version: fieldOf(text({ codePointsMax: runLimits.clientVersionCodePointsMax })),
  files: {
    ...listOf<RunFile>(fileFields, 1, (files) =>
      repeated(
        files.filter(({ type }) => type === 'interactions'),
        ({ sha256 }) => sha256,
      )
        ? 'has two files of interactions with the same sha256; send one of them'
        : undefined,
    ),
    required: true,
  },
  again: {
    schema: {
      type: 'boolean',
      default: false,
      description: 'true to upload files of interactions again that were uploaded before',
    },
    read: (value: unknown) =>
      typeof value === 'boolean' ? value : refuse('wrong_type', 'must be true or false, without quotes'),
  },
} satisfies Record<string, BodyField>;

const endings = ['finished', 'failed'] as const;

const endFields = {
  status: {
    schema: { type: 'string', enum: endings },
    required: true,
    read: (value: unknown) =>
      endings.find((one) => one === value) ?? refuse('invalid_value', `must be one of ${endings.join(', ')}`),
  },
  files: listOf<Unseen>(unseenFields, 0, (files) =>
    repeated(files, ({ file }) => file) ? 'names a file twice' : undefined,
  ),
} satisfies Record<string, BodyField>;

const bodyExample = {
  name: 'nightly export',
  client_version: '0.2.0',
  files: [
    {
      name: 'shops.csv',
      bytes: 190,
      sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
      type: 'shops',
    },
  ],
};

function refuseTypes(call: Call, types: readonly UploadType[]): void {
  const { permissions } = principalOf(call);
  const missing = types.map(uploadPermission).find((needed) => !permits(permissions, needed));
  if (missing) throw lacksPermission(missing);
}

/** Checks that the run exists, and that the key may upload its files. */
async function ownRun(call: Call, { pool }: Parts) {
  const { organisationId } = principalOf(call);
  const runId = call.params.run_id;
  if (!isUuid(runId)) throw new RequestError('run_not_found');
  const own = pool.atOwner(organisationId);
  const run = await readRun(own, organisationId, runId);
  refuseTypes(
    call,
    run.files.map(({ type }) => type),
  );
  return { own, organisationId, run };
}

const open: Operation = {
  id: 'open-run',
  method: 'POST',
  path: '/v1/runs',
  tag,
  summary: 'Open a run',
  description:
    'A run is one upload of one or several files. Requests that upload their records name it with `run_id`, `file` and ' +
    '`first_record`, and their receipts show that. Send an `Idempotency-Key`: opening a run again with the same key and the ' +
    'same body returns the same run with 200. A file of interactions that was uploaded in the last ' +
    `${runLimits.fileClaimDays} days is refused, unless \`again\` is true. ${aboutPermissions}`,
  permission,
  isForUploaders: true,
  requestHeaders: {
    'Idempotency-Key': {
      type: 'string',
      minLength: 1,
      maxLength: limits.idempotencyKeyCharactersMax,
      description: 'Identifies the run as long as it is kept. Another body gets 422.',
    },
  },
  requestBody: { schema: bodySchema(openFields), bytesMax: runLimits.bodyBytesMax, example: bodyExample },
  answers: {
    200: runAnswer,
    201: runAnswer,
    409: refused(
      'A file of interactions was uploaded before, or too many runs are open. Codes: `file_uploaded`, `too_many_runs`.',
    ),
    422: keyReused,
  },
  async handle(call, { pool }) {
    const { organisationId, keyId } = principalOf(call);
    const { name, client_version = null, files, again = false } = readFields(openFields, call.body, false);
    refuseTypes(
      call,
      files.map(({ type }) => type),
    );
    const own = pool.atOwner(organisationId);
    const { runId, isRepeated } = await openRun(own, {
      organisationId,
      keyId,
      idempotencyKey: readIdempotencyKey(call),
      name,
      clientVersion: client_version,
      files,
      again,
    });
    const body = await findRun(own, organisationId, runId);
    return { status: isRepeated ? 200 : 201, body, ...(isRepeated && { headers: idempotencyReplayed }) };
  },
};

const end: Operation = {
  id: 'end-run',
  method: 'POST',
  path: '/v1/runs/{run_id}/end',
  tag,
  summary: 'End a run',
  description:
    'Ends a run as `finished` or `failed`, with what the client counted and the service did not see. Requests of a run that ' +
    'has ended are refused. Do not end a run that will be continued: without requests it becomes `interrupted`, and the next ' +
    'request continues it. A failed run releases its files of interactions of which nothing was stored, so that another run ' +
    `can upload them. Ending it again with the same body returns the same answer. ${aboutPermissions}`,
  permission,
  isForUploaders: true,
  pathParameters,
  requestBody: {
    schema: bodySchema(endFields),
    bytesMax: runLimits.bodyBytesMax,
    example: { status: 'finished', files: [{ file: 0, not_sent: 0, not_kept: 0 }] },
  },
  answers: {
    200: runAnswer,
    404: notFound,
    409: runEnded,
  },
  async handle(call, parts) {
    const { own, organisationId, run } = await ownRun(call, parts);
    const { status, files: unseen = [] } = readFields(endFields, call.body, false);
    const unknown = unseen.find(({ file }) => file >= run.files.length);
    if (unknown) {
      const message = `has the index ${unknown.file}, but the run has only ${run.files.length} files`;
      const details = [{ field: 'files', code: 'invalid_value', message }];
      throw new RequestError('invalid_request', { details });
    }
    await endRun(own, organisationId, run.run_id, { status, unseen });
    return { status: 200, body: await findRun(own, organisationId, run.run_id) };
  },
};

const heartbeat: Operation = {
  id: 'note-heartbeat',
  method: 'POST',
  path: '/v1/runs/{run_id}/heartbeat',
  tag,
  summary: 'Show that a run is still running',
  description:
    'For a client that sends no requests for some time, for example because it waits for another file. Once a minute is ' +
    `enough. ${aboutPermissions}`,
  permission,
  isForUploaders: true,
  pathParameters,
  answers: {
    200: {
      description: 'The run is running.',
      schema: {
        type: 'object',
        properties: {
          run_id: { type: 'string', format: 'uuid' },
          status: { type: 'string', enum: ['running'] },
        },
        required: ['run_id', 'status'],
      },
    },
    404: notFound,
    409: runEnded,
  },
  async handle(call, parts) {
    const { own, organisationId, run } = await ownRun(call, parts);
    if (run.status !== 'open') throw new RequestError('run_ended');
    await noteHeartbeat(own, organisationId, run.run_id);
    return { status: 200, body: { run_id: run.run_id, status: 'running' } };
  },
};

const list: Operation = {
  id: 'list-runs',
  method: 'GET',
  path: '/v1/runs',
  tag,
  summary: 'List runs',
  description: 'Returns a page of runs, the newest first: send `next_cursor` as `cursor` until it is null.',
  permission: 'data:read',
  query: runFilters,
  answers: { 200: onePage('RunPage') },
  async handle(call, parts) {
    const [pool, organisationId] = ownOf(call, parts);
    const read = () => runPage(pool, organisationId, call.query);
    return { status: 200, body: await parts.longReads.take(organisationId, read) };
  },
};

const get: Operation = {
  id: 'get-run',
  method: 'GET',
  path: '/v1/runs/{run_id}',
  tag,
  summary: 'Get a run',
  description:
    'Returns a run with its files. All counts are sums of its receipts. `reasons` covers the failed records that are still ' +
    'kept as rejections, up to the first ' +
    `${runLimits.failedRecordsMax.toLocaleString('en')}. Runs are kept as long as receipts.`,
  permission: 'data:read',
  pathParameters,
  answers: { 200: described('The run.', 'Run'), 404: notFound },
  async handle(call, parts) {
    const [pool, organisationId] = ownOf(call, parts);
    const runId = call.params.run_id;
    if (!isUuid(runId)) throw new RequestError('run_not_found');
    const read = async () => {
      const run = await findRun(pool, organisationId, runId);
      const reasons = run.counts.failed > 0 ? await reasonsOf(pool, organisationId, runId) : [];
      const links = {
        requests: `/v1/requests?run_id=${run.run_id}`,
        rejections: `/v1/rejections?run_id=${run.run_id}`,
      };
      return { ...run, reasons, links };
    };
    return { status: 200, body: await parts.longReads.take(organisationId, read) };
  },
};

async function reasonsOf(pool: Pool, organisationId: string, runId: string) {
  const { requestIds } = await failedRequestsOf(pool, organisationId, runId);
  const { rejections } = await rejectionSummary(pool, organisationId, { requestIds });
  return rejections.map(({ type, code, field, count }) => ({ type, code, field, count }));
}

export const runOperations: readonly Operation[] = [open, heartbeat, end, list, get];
