import { afterAll, beforeAll, expect, it } from 'vitest';
import { Fleet } from '../support/fleet.ts';
import { nginxIsInstalled } from '../support/nginx.ts';

const rounds = Number(process.env.RESTART_ROUNDS ?? 2);
let fleet: Fleet;
beforeAll(async () => {
  if (nginxIsInstalled) fleet = await Fleet.start();
});
afterAll(() => fleet?.stop());

it.skipIf(!nginxIsInstalled)(
  `four processes behind nginx are restarted one after the other under load, ${rounds} times, and no request fails`,
  { timeout: 240_000 + rounds * 60_000 },
  async () => {
    const clients = fleet.startClients();
    for (let round = 0; round < rounds; round++)
      for (let index = 0; index < 4; index++) await fleet.restart(index);
    const { answered, failed, lost } = await clients.stop();
    console.log(`${rounds * 4} restarts behind nginx: ${answered} requests, ${failed.length} failed`);
    expect({ failed, lost, errors: fleet.nginx.errors().match(/.*prematurely.*/g) }).toEqual({
      failed: [],
      lost: [],
      errors: null,
    });
    expect(answered).toBeGreaterThan(rounds * 100);
  },
);
