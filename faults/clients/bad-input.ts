import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { Random } from '../../test/fault/erasure-mixture/random.ts';
import type { ClientKind, Stage } from './client.ts';

/** Sends what no client should send. Each request is refused with a 4xx, and never with a 5xx of its own. */
export const badInput: ClientKind = {
  name: 'bad input',
  promises: 'I7 I8',
  perOrganisation: 0.7,
  start: (stage) => ({ run: () => sendBadInput(stage) }),
};

interface Bad {
  readonly what: string;
  readonly path: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body: string | Uint8Array<ArrayBuffer>;
}

const shops = '/v1/data/shops';
const json = (value: unknown) => JSON.stringify(value);
const shop = (fields: object) => json({ records: [{ name: 'Shop', region: 'GB', ...fields }] });

const bad: readonly ((random: Random) => Bad)[] = [
  () => ({ what: 'no JSON', path: shops, body: '{"records":[' }),
  () => ({ what: 'no list', path: shops, body: json({ records: { shop_id: 1 } }) }),
  () => ({ what: 'an empty list', path: shops, body: json({ records: [] }) }),
  () => ({ what: 'NUL', path: shops, body: shop({ shop_id: '\u0000', name: 'a\u0000b' }) }),
  () => ({ what: 'a lone surrogate', path: shops, body: shop({ shop_id: 'x' }).replace('Shop', '\\ud800') }),
  (random) => ({ what: 'deep', path: shops, body: `${'['.repeat(10_000 + random.below(90_000))}` }),
  () => ({ what: 'a field twice', path: shops, body: '{"records":[{"shop_id":"x","shop_id":"y"}]}' }),
  () => ({ what: '__proto__', path: shops, body: '{"records":[{"__proto__":{"shop_id":1}}]}' }),
  () => ({
    what: 'huge numbers',
    path: shops,
    body: '{"records":[{"shop_id":1e400,"name":123456789012345678901}]}',
  }),
  (random) => ({
    what: 'no UTF-8',
    path: shops,
    body: new Uint8Array(Buffer.from(random.hex(2_000), 'hex')),
  }),
  (random) => ({
    what: 'a bomb',
    path: shops,
    headers: { 'content-encoding': 'gzip' },
    body: new Uint8Array(gzipSync(Buffer.alloc(40_000_000 + random.below(9)))),
  }),
  () => ({ what: 'a broken archive', path: shops, headers: { 'content-encoding': 'gzip' }, body: 'no gzip' }),
  () => ({ what: 'another media type', path: shops, headers: { 'content-type': 'text/xml' }, body: '<a/>' }),
  (random) => ({ what: 'a wrong path', path: `/v1/data/${random.hex(8)}`, body: '{}' }),
  (random) => ({
    what: 'a wrong cursor',
    method: 'GET',
    path: `/v1/changes?after=${random.hex(40)}`,
    body: '',
  }),
  (random) => ({
    what: 'a long key',
    path: shops,
    headers: { 'idempotency-key': random.hex(300) },
    body: shop({ shop_id: random.uuid() }),
  }),
  (random) => ({
    what: 'wrong types',
    path: '/user-interactions',
    body: json({ interaction_type: 7, item_id: [random.hex(4)], event_timestamp: {}, user_id: '' }),
  }),
];

async function sendBadInput(stage: Stage): Promise<void> {
  const { random, over, world, organisation, violate, count } = stage;
  while (!stage.isOver) {
    await sleep(50 + random.below(400), undefined, { signal: over }).catch(() => {});
    const { what, path, method = 'POST', headers, body } = random.pick(bad)(random);
    try {
      const answer = await fetch(world.url + path, {
        method,
        headers: {
          authorization: `Bearer ${organisation.key}`,
          ...(method === 'POST' && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(method === 'POST' && { body }),
        signal: AbortSignal.timeout(30_000),
      });
      const { code } = await answer.json().catch(() => ({ code: null }));
      count('bad requests');
      const isOurs = answer.headers.get('x-request-id') !== null;
      // While PostgreSQL is away, requests that need it get 503.
      const isRefused = answer.status >= 400 && answer.status < 500;
      if (isOurs && !isRefused && answer.status !== 503)
        violate('I8: bad input was not refused', { what, status: answer.status, code });
    } catch {
      // There was no answer.
    }
  }
}
