// @module-tag full

import { expect, it } from 'vitest';
import { playWithFleet } from '../support/fleet.ts';
import { nginxIsInstalled } from '../support/nginx.ts';

const rounds = Number(process.env.RESTART_ROUNDS ?? 2);
const processes = 2;

it.skipIf(!nginxIsInstalled)(
  `two processes behind nginx are restarted under load, ${rounds * processes} times, and no request fails`,
  { timeout: 1_200_000 + rounds * 60_000 },
  async () => {
    let errors: unknown;
    let lines: string[] = [];
    const { answered, failed, lost } = await playWithFleet(async (fleet) => {
      const clients = fleet.startClients();
      for (let round = 0; round < rounds; round++)
        for (let index = 0; index < processes; index++) await fleet.restart(index);
      const served = await clients.stop();
      errors = fleet.nginx.errors().match(/.*prematurely.*/g);
      lines = fleet.nginx.requests().trim().split('\n');
      return served;
    }, processes);
    console.log(`${rounds * processes} restarts behind nginx: ${answered} requests, ${failed.length} failed`);
    expect({ failed, lost, errors }).toEqual({ failed: [], lost: [], errors: null });
    expect(answered).toBeGreaterThan(rounds * 100);
    expect(lines.length).toBeGreaterThanOrEqual(answered);
    expect(lines.filter((line) => !/, request [0-9a-f-]{36}$/.test(line))).toEqual([]);
    // Print how many requests the other process answered during the restart.
    console.log(
      `${lines.filter((line) => / 502, 20[01], request /.test(line)).length} were sent to the other one`,
    );
  },
);
