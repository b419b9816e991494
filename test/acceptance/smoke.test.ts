import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';

let server: BuiltServer;
let api: Api;
beforeAll(async () => {
  server = await startBuiltServer();
  api = apiOf(server.url, await server.createKey('acme'));
});
afterAll(() => server.stop());

it('stores a shop', async () => {
  const { status, body } = await api.upload('shops', [
    { shop_id: '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01', name: 'Corner Bakery', region: 'GB' },
  ]);
  expect(status).toBe(200);
  expect(body.batches[0].data.counts.created).toBe(1);
});
