// http/routes/: the API's operations, one file per capability.

import { RequestError } from '../../errors.ts';
import { meaningOf } from '../../postgres/loggable-error.ts';
import { isAnswered, isLockTimeout, isUnavailable } from '../../postgres/pool.ts';
import { refused } from '../operation/described-answers.ts';
import type { Operation, Parts } from '../operation/operation.ts';

type HealthParts = Pick<Parts, 'readiness'>;

const tag = 'Health';
const schema = {
  type: 'object',
  required: ['status'],
  properties: { status: { type: 'string', const: 'ok' } },
};
const ok = { status: 200, body: { status: 'ok' } };

const live: Operation<HealthParts> = {
  id: 'health-live',
  method: 'GET',
  path: '/health/live',
  tag,
  summary: 'Is the process alive?',
  description: 'Answers while the process is running, and does not query the database.',
  permission: null,
  answers: { 200: { description: 'The process is alive.', schema } },
  handle: async () => ok,
};

const ready: Operation<HealthParts> = {
  id: 'health-ready',
  method: 'GET',
  path: '/health/ready',
  tag,
  summary: 'Can it serve?',
  description:
    'Returns 200 if the database can be reached, has a schema that this version works with, writes succeed and survive a ' +
    "crash, and the process has every erasure key that is in use and a clock that agrees with the database's. Returns 503 " +
    'if for 8 seconds no waiting upload or interaction has been stored or no connection has become free, or if writes of several organisations fail because of the database server. ' +
    'The answer arrives within 2 seconds and may be a second old, or a few seconds for clock, settings and erasure keys.',
  permission: null,
  answers: {
    200: { description: 'It can serve.', schema },
    503: refused('It cannot serve; the message says why.'),
  },
  async handle(_call, { readiness }) {
    const stalled = await answered(readiness.stalled());
    // During a rolling upgrade, an old process sees a newer schema and keeps serving.
    const state = await readiness.schemaState();
    if (state === 'behind' || state === 'ahead') throw new RequestError(`schema_${state}`);
    const failure = await readiness.serverFailure();
    if (failure !== undefined) throw unusable(failure);
    const unmet = await answered(readiness.unmet());
    if (unmet) throw unmet;
    if (stalled.length > 0) throw new RequestError('stalled', { message: sentence(stalled) });
    return ok;
  },
};

function answered<T>(asked: Promise<T>): Promise<T> {
  return asked.catch((error: unknown) => {
    throw isUnavailable(error) ? unusable(error) : error;
  });
}

function unusable(cause: unknown): RequestError {
  return new RequestError('database_unavailable', { message: messageOf(cause), cause });
}

function messageOf(cause: unknown): string {
  // `keys_can_be_trusted()` raises this error code.
  if ((cause as { code?: unknown }).code === 'IN001') return restored;
  if (!isAnswered(cause) || isLockTimeout(cause)) return away;
  const problem = meaningOf(cause) ?? 'PostgreSQL reports an error; see its log';
  const { code } = cause as { code?: string };
  return (
    `${problem} (SQLSTATE ${code}). See docs/operating/runbook.md, "A process is not ready". ` +
    'This process becomes ready on its own.'
  );
}

const restored =
  'The database was restored to an earlier time. The operator has to run intake-server after-restore with the audit log ' +
  '(--audit) or --revoke-all-keys, and with the ledger of erased people (--erasures) or --without-erasures, and then ' +
  'remove recovery_target… from the settings of PostgreSQL. See docs/operating/day-two.md, "Restore".';

const away =
  'The database does not answer; check that it is running and that this machine can reach it. This process continues on its own.';

const stallOf = {
  uploads: 'uploads are waiting and no batch has been stored',
  interactions: 'interactions are waiting and none has been stored',
  connections: 'every connection for uploads and reads has been in use and none has been released',
  keys: 'the poll for changed keys has failed',
};

export type StallingPart = keyof typeof stallOf;

function sentence(stalled: readonly { readonly part: string; readonly ms: number }[]): string {
  const parts = stalled.map(
    ({ part, ms }) => `${stallOf[part as StallingPart]} for ${Math.round(ms / 1_000)} s`,
  );
  return (
    `Writing has stalled: ${parts.join('; ')}. The database answers, so look there for a session that holds a lock, and ` +
    'end it, as described in docs/operating/runbook.md, "A process is not ready". If no session holds one, restart this process.'
  );
}

export const healthOperations: readonly Operation<HealthParts>[] = [live, ready];
