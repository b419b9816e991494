import { RequestError } from '../../errors.ts';
import { type SchemaState, schemaState } from '../../store/migrate.ts';
import type { Pool } from '../../store/pool.ts';
import type { Operation, Parts } from '../operation.ts';

type HealthParts = Pick<Parts, 'pool'>;

const tag = 'Health';
const schema = { type: 'object', required: ['status'], properties: { status: { const: 'ok' } } };
const ok = { status: 200, body: { status: 'ok' } };

const live: Operation<HealthParts> = {
  id: 'health-live',
  method: 'GET',
  path: '/health/live',
  tag,
  summary: 'Is the process alive?',
  description: 'Answers as long as the process does; asks nothing of the database.',
  permission: null,
  answers: { 200: { description: 'It is.', schema } },
  handle: async () => ok,
};

const ready: Operation<HealthParts> = {
  id: 'health-ready',
  method: 'GET',
  path: '/health/ready',
  tag,
  summary: 'Can it serve?',
  description: 'Answers 200 when the database can be reached and its schema has what this version needs.',
  permission: null,
  answers: {
    200: { description: 'It can.', schema },
    503: { description: 'It cannot; the message says why.', schema: { $ref: '#/components/schemas/Error' } },
  },
  async handle(_call, { pool }) {
    // A schema that has moved ahead is what a rolling upgrade looks like from the old process: it goes on serving.
    if ((await stateOf(pool)) === 'behind') throw new RequestError('schema_behind');
    return ok;
  },
};

/** Those who ask at the same time share an answer: it takes no key to ask, and must not take up the database. */
const asked = new WeakMap<Pool, Promise<SchemaState>>();

function stateOf(pool: Pool): Promise<SchemaState> {
  const state = asked.get(pool) ?? schemaState(pool).finally(() => asked.delete(pool));
  asked.set(pool, state);
  return state;
}

export const healthOperations: readonly Operation<HealthParts>[] = [live, ready];
