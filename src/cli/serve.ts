import { parseArgs } from 'node:util';
import type { FastifyInstance } from 'fastify';
import { type Config, readConfig } from '../config.ts';
import { buildApp } from '../http/app.ts';
import { createParts } from '../http/operation.ts';
import * as uploads from '../ingest/housekeeping.ts';
import * as interactions from '../interactions/housekeeping.ts';
import { limits } from '../limits.ts';
import { schemaState } from '../store/migrate.ts';
import { createPool, isRefusedLogin, isUnavailable, type Pool } from '../store/pool.ts';
import { commandError } from './help.ts';

export async function run(args: string[]): Promise<void> {
  parseArgs({ args, options: {} });
  const service = await startService(readConfig());
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void service.stop());
}

export interface Service {
  /** Where it listens. */
  readonly address: string;
  /** Finishes what was begun, refuses what is new, lets go of the database. */
  stop(): Promise<void>;
}

export async function startService(config: Config): Promise<Service> {
  let app: FastifyInstance | undefined;
  const pool = createPool(config, (error) => app?.log.warn({ err: error }, 'an idle connection was lost'));
  try {
    await refuseOtherSchema(pool);
    app = await buildApp(createParts(config, pool));
    const address = await listen(app, config);
    const stopHousekeeping = startHousekeeping(app, pool, config);
    const running = app;
    return {
      address,
      async stop() {
        stopHousekeeping();
        await running.close();
        await pool.end();
      },
    };
  } catch (error) {
    await app?.close();
    await pool.end();
    throw error;
  }
}

async function listen(app: FastifyInstance, { host, port }: Config): Promise<string> {
  try {
    return await app.listen({ host, port });
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === 'EADDRINUSE') throw commandError(`port ${port} of ${host} is taken; set PORT to another`);
    throw commandError(`cannot listen on port ${port} of ${host} (${code}); check HOST and PORT`);
  }
}

/** A database that is away may come back, and /health/ready tells; one with another schema will not change by itself. */
async function refuseOtherSchema(pool: Pool): Promise<void> {
  const state = await schemaState(pool).catch((error: unknown) => {
    if (isUnavailable(error) && !isRefusedLogin(error)) return 'current';
    throw error;
  });
  if (state === 'behind')
    throw commandError('the database schema is behind this program; run intake-server migrate');
  if (state === 'ahead')
    throw commandError('the database schema is ahead of this program; run a newer intake-server');
}

function startHousekeeping(app: FastifyInstance, pool: Pool, { receiptsKeptDays }: Config): () => void {
  const chores: [work: () => Promise<void>, everyMs: number][] = [
    [() => interactions.keepHouse(pool), limits.housekeepingIntervalMs],
    [() => uploads.keepHouse(pool, receiptsKeptDays), limits.housekeepingIntervalMs],
    [() => uploads.rollUp(pool), limits.rollUpIntervalMs],
  ];
  const timers = chores.map(([work, everyMs]) => {
    const keep = () => {
      work().catch((error: unknown) =>
        app.log.error({ err: error }, 'housekeeping failed; it will be tried again'),
      );
    };
    keep();
    return setInterval(keep, everyMs);
  });
  return () => timers.forEach(clearInterval);
}
