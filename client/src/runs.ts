import type { Connection, Signal } from './connection.ts';
import { isObject } from './errors.ts';
import type { components, operations } from './generated/api.ts';
import { readPages } from './reading/read-pages.ts';

type Schemas = components['schemas'];
type Query<O extends keyof operations> = NonNullable<operations[O]['parameters']['query']>;
type Body<O extends 'open-run' | 'end-run'> = operations[O]['requestBody']['content']['application/json'];

export type RunOpening = Body<'open-run'>;
export type RunEnding = Body<'end-run'>;

export type RunFilters = Omit<Query<'list-runs'>, 'cursor'>;

/** Uploads of one or several files. */
export class Runs {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Opens a run. Opening it again with the same `key`, for example after an interruption, returns the same run. */
  open(run: RunOpening, { key, signal }: { readonly key: string } & Signal): Promise<Schemas['Run']> {
    const headers = { 'idempotency-key': key };
    return this.#connection.request({
      method: 'POST',
      path: '/v1/runs',
      body: JSON.stringify(run),
      headers,
      isAnswer: isRun,
      signal,
    });
  }

  /** Shows that the run is still running, if it sends no requests for some time. */
  heartbeat(runId: string, { signal }: Signal = {}): Promise<{ run_id: string; status: string }> {
    const path = `/v1/runs/${encodeURIComponent(runId)}/heartbeat`;
    return this.#connection.request({ method: 'POST', path, signal });
  }

  /** Ends the run. Ending it again in the same way has no further effect. */
  end(runId: string, ending: RunEnding, { signal }: Signal = {}): Promise<Schemas['Run']> {
    const path = `/v1/runs/${encodeURIComponent(runId)}/end`;
    return this.#connection.request({
      method: 'POST',
      path,
      body: JSON.stringify(ending),
      isAnswer: isRun,
      signal,
    });
  }

  /** Lists runs, newest first. */
  list({ signal, ...filters }: RunFilters & Signal = {}): AsyncIterable<Schemas['RunSummary']> {
    return readPages(this.#connection, '/v1/runs', 'runs', filters, signal);
  }

  /** Returns the run with its files, and the reasons of its failed records. */
  get(runId: string, { signal }: Signal = {}): Promise<Schemas['Run']> {
    return this.#connection.request({ path: `/v1/runs/${encodeURIComponent(runId)}`, signal });
  }
}

function isRun(answer: unknown): boolean {
  return isObject(answer) && typeof answer.run_id === 'string' && typeof answer.status === 'string';
}
