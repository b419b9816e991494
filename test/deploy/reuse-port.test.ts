// @module-tag full

import { afterAll, expect, it } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { freePort } from '../support/free-port.ts';
import { runCommand } from '../support/run-command.ts';

const servers: BuiltServer[] = [];
afterAll(async () => {
  for (const server of servers) await server.stop();
});

/** Returns a process's log lines about answered requests. Health checks are logged only at level debug. */
const answered = (server: BuiltServer) => server.log.filter((line) => line.includes('"msg":"answered"'));

/** Sends each request on its own connection, because the kernel distributes connections between the processes. */
async function ask(url: string, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const { status } = await fetch(`${url}/health/live`, { headers: { connection: 'close' } });
    expect(status).toBe(200);
  }
}

it('with REUSE_PORT two processes serve on one port, and the second continues when the first stops', async () => {
  const env = { PORT: String(await freePort()), REUSE_PORT: 'on', LOG_LEVEL: 'debug' };
  const first = await startBuiltServer(env);
  servers.push(first);
  const second = await startBuiltServer({ ...env, DATABASE_URL: first.databaseUrl });
  servers.push(second);
  expect(second.url).toBe(first.url);
  for (let round = 0; answered(first).length === 0 || answered(second).length === 0; round++) {
    expect(round, 'one process gets all connections').toBeLessThan(50);
    await ask(first.url, 10);
  }
  await first.stop();
  await ask(second.url, 10);
});

it('a process without the setting reports that the port is taken', async () => {
  const [, server] = servers as [BuiltServer, BuiltServer];
  const { port } = new URL(server.url);
  const env = { PATH: process.env.PATH ?? '', DATABASE_URL: server.databaseUrl, PORT: port };
  const { exitCode, stderr } = await runCommand(['serve'], env);
  expect([exitCode, stderr]).toEqual([
    1,
    `intake-server: port ${port} of 127.0.0.1 is taken; set PORT to another\n`,
  ]);
});
