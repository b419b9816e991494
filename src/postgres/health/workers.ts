import { RequestError } from '../../errors.ts';
import { selectCluster } from '../cluster/extension.ts';
import type { Pool } from '../pool.ts';
import type { Requirement } from './requirements.ts';
import { clockDifferenceMaxMs, explainUnsafe, type Row, stateQuestion } from './server-state.ts';

interface Worker extends Pick<Row, 'refused' | 'accepted'> {
  /** As `host:port`. */
  readonly node: string;
  /** Compared with the coordinator's clock. */
  readonly aheadMs: number;
}

/**
 * A cluster's workers, without those that the coordinator cannot reach: requests for their organisations fail anyway.
 * Returns none on plain PostgreSQL.
 */
export async function readWorkers(pool: Pick<Pool, 'query'>): Promise<Worker[]> {
  const { rowCount: clusters } = await pool.query(selectCluster);
  if (clusters === 0) return [];
  const { rows } = await pool.query<{ node: string; state: string; now_ms: number }>(
    `select n.nodename || ':' || n.nodeport as node, r.result as state,
       extract(epoch from clock_timestamp())::float8 * 1000 as now_ms
     from run_command_on_all_nodes($$ select to_json(s)::text from (${stateQuestion}) as s $$) as r
     join pg_dist_node n on n.nodeid = r.nodeid
     where r.success and n.groupid > 0 order by node`,
  );
  return rows.map(({ node, state, now_ms }) => {
    const { now_ms: ofWorkerMs, refused, accepted } = JSON.parse(state) as Row;
    return { node, aheadMs: ofWorkerMs - now_ms, refused, accepted };
  });
}

export const nameOfWorker = (node: string) => `PostgreSQL on the worker ${node}`;

/** Statements that run on a worker use its settings and its clock. */
export class Workers implements Requirement {
  readonly #pool: Pick<Pool, 'query'>;
  #workers: readonly Worker[] = [];
  #looking: Promise<void> | undefined;

  constructor(pool: Pick<Pool, 'query'>) {
    this.#pool = pool;
  }

  /** Never rejects and never holds two connections, because a worker that hangs concerns only its own organisations. */
  look(): Promise<void> {
    const read = async () => {
      this.#workers = await readWorkers(this.#pool).catch(() => this.#workers);
      this.#looking = undefined;
    };
    this.#looking ??= read();
    return this.#looking;
  }

  unmet(): RequestError | undefined {
    for (const { node, aheadMs, refused } of this.#workers) {
      const name = nameOfWorker(node);
      if (refused.length > 0)
        return new RequestError('database_unsafe', { message: `${explainUnsafe(refused, name)}.` });
      if (Math.abs(aheadMs) > clockDifferenceMaxMs)
        return new RequestError('clock_differs', {
          message:
            `The clock of ${name} is ${Math.round(Math.abs(aheadMs) / 1_000)} seconds ${aheadMs > 0 ? 'ahead of' : 'behind'} the ` +
            'clock of the coordinator; the operator has to correct the one that is wrong.',
        });
    }
    return undefined;
  }
}
