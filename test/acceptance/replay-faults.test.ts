// @module-tag full
// @module-tag pooler

import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer, startBuiltServer } from '../support/built-server.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { overviewOf } from '../support/overview.ts';
import { listRejections, replayRejections } from '../support/rejections.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

/** Tests replays that run concurrently with other replays and uploads, or lose the database halfway. */

let server: SharedServer;
let api: Api;
beforeAll(async () => {
  server = await sharedServer();
});
beforeEach(async () => {
  api = apiOf(server.url, await server.createKey(`acme-${randomUUID().slice(0, 8)}`));
});

const sumOf = (answer: Answer, count: 'received' | 'created' | 'failed'): number =>
  answer.body.batches.reduce(
    (sum: number, { data }: { data: { counts: Record<string, number> } }) => sum + data.counts[count]!,
    0,
  );

it('a replay that cannot count what remains reports what it stored', async () => {
  const proxy = await startTcpProxy(server.databaseUrl);
  const through = await startBuiltServer({ DATABASE_URL: proxy.databaseUrl });
  const slug = `acme-${randomUUID().slice(0, 8)}`;
  const own = apiOf(through.url, await server.createKey(slug));
  const shop = newShop();
  await own.upload(
    'transactions',
    many(1_500, () => newTransaction(shop.shop_id)),
  );
  await own.upload('shops', [shop]);
  // The statement runs once for each of two batches, once to find that nothing is left, and once to count.
  let asked = 0;
  proxy.watch((bytes, link) => {
    // Recognise the statement by its name, or by its text if statements are not prepared.
    const asks = bytes.includes('list rejection kinds') || bytes.includes('order by count desc, k.kind_id');
    if (!asks || ++asked < 4) return true;
    link.cut();
    return false;
  });
  const answer = await replayRejections(own);
  proxy.unwatch();
  expect(asked).toBe(4);
  expect(answer.status).toBe(200);
  expect(sumOf(answer, 'created')).toBe(1_500);
  expect(answer.body).toMatchObject({ remaining: null, next_cursor: null });
  expect((await overviewOf(own)).transactions).toMatchObject({ records: 1_500, open_rejections: 0 });
  await through.stop();
  await proxy.close();
});

/** Replays as documented: repeats with `next_cursor` until it is null. */
async function replayAll(query: Record<string, string> = {}): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const answer = await replayRejections(api, { ...query, ...(cursor && { cursor }) });
    expect(answer.status).toBe(200);
    answers.push(answer);
    cursor = answer.body.next_cursor;
  }
  return answers;
}

const createdIn = (answers: readonly Answer[]) =>
  answers.reduce((sum, answer) => sum + sumOf(answer, 'created'), 0);

it('two replays with different filters each try all of their rejections', async () => {
  const shops = many(2, () => newShop());
  const requests: string[] = [];
  for (const { shop_id } of shops) {
    const { body } = await api.upload(
      'transactions',
      many(4_000, () => newTransaction(shop_id)),
    );
    requests.push(body.request_id);
  }
  await api.upload('shops', shops);
  for (const answers of await Promise.all(requests.map((request_id) => replayAll({ request_id })))) {
    expect(createdIn(answers)).toBe(4_000);
    expect(answers.at(-1)!.body).toMatchObject({ remaining: 0 });
  }
  expect(await listRejections(api)).toEqual([]);
});

it('two replays of the same rejections store each once, and both end', async () => {
  const shop = newShop();
  await api.upload(
    'transactions',
    many(3_000, () => newTransaction(shop.shop_id)),
  );
  await api.upload('shops', [shop]);
  expect(createdIn((await Promise.all([replayAll(), replayAll()])).flat())).toBe(3_000);
  expect((await overviewOf(api)).transactions).toMatchObject({ records: 3_000, open_rejections: 0 });
});

it('a replay concurrent with uploads of the same records never ends in 500', async () => {
  const shops = many(10, () => newShop());
  const transactions = shops.flatMap(({ shop_id }) => many(100, () => newTransaction(shop_id)));
  const statuses: Record<number, number> = {};
  const doing = async (times: number, work: () => Promise<Answer>) => {
    for (let round = 0; round < times; round++) {
      const { status } = await work();
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  };
  await api.upload('transactions', transactions);
  await Promise.all([
    ...many(3, () => doing(20, () => replayRejections(api))),
    ...many(3, (at) =>
      doing(20, () =>
        api.upload(
          'transactions',
          transactions.filter((_, index) => index % 3 === at),
        ),
      ),
    ),
    (async () => {
      for (const shop of shops) await api.upload('shops', [shop]);
    })(),
  ]);
  console.log('replays during uploads', statuses);
  expect(Object.keys(statuses).filter((status) => Number(status) >= 500)).toEqual([]);
  await replayRejections(api);
  expect((await overviewOf(api)).transactions).toMatchObject({ records: 1_000, open_rejections: 0 });
});
