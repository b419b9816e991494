// @module-tag full

import { expect, it } from 'vitest';
import { playWithFleet } from '../support/fleet.ts';
import { nginxIsInstalled } from '../support/nginx.ts';

const rounds = Number(process.env.RESTART_ROUNDS ?? 2);

it.skipIf(!nginxIsInstalled)(
  `four processes behind nginx are restarted one after the other under load, ${rounds} times, and no request fails`,
  { timeout: 600_000 + rounds * 60_000 },
  async () => {
    let errors: unknown;
    const { answered, failed, lost } = await playWithFleet(async (fleet) => {
      const clients = fleet.startClients();
      for (let round = 0; round < rounds; round++)
        for (let index = 0; index < 4; index++) await fleet.restart(index);
      const served = await clients.stop();
      errors = fleet.nginx.errors().match(/.*prematurely.*/g);
      return served;
    });
    console.log(`${rounds * 4} restarts behind nginx: ${answered} requests, ${failed.length} failed`);
    expect({ failed, lost, errors }).toEqual({ failed: [], lost: [], errors: null });
    expect(answered).toBeGreaterThan(rounds * 100);
  },
);
