import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';

/** Starts a server with recorded interactions for each test file that imports this module. */

export interface Interaction {
  readonly interaction_id: string;
  readonly created: string;
  readonly [field: string]: unknown;
}

export let server: SharedServer;
export let api: Api;
export let otherApi: Api;
/** The recorded interactions, in the order they were recorded. */
export const recorded: Interaction[] = [];
export const [shop, otherShop, tag, student, recommendation] = Array.from({ length: 5 }, () => randomUUID());

beforeAll(async () => {
  server = await sharedServer();
  api = apiOf(server.url, await server.createKey('acme'));
  otherApi = apiOf(server.url, await server.createKey('other'));
  for (const to of [api, otherApi]) {
    await to.batch(
      'shops',
      [shop, otherShop].map((shop_id) => ({ shop_id, name: 'Shop', region: 'GB' })),
    );
    await to.batch('tags', [{ tag_id: tag, name: 'vegan' }]);
    await to.batch('customers', [{ customer_id: student, user_id: randomUUID(), region: 'GB' }]);
  }
  for (let at = 0; at < 24; at++) recorded.push(await record(fieldsOf(at)));
  await record(fieldsOf(0), otherApi);
});

/** Varies the fields so that every filter matches some interactions, but not all. */
export function fieldsOf(at: number): object {
  return {
    interaction_type: ['FILTER_CLICK', 'SHARE', 'PAGE_VIEW', 'DISCOUNT_CODE'][at % 4],
    ...(at % 5 === 0
      ? { item_type: 'TAG', item_id: tag }
      : { item_type: 'SHOP', item_id: at % 2 ? shop : otherShop }),
    user_id: at % 3 ? 'visitor & co+1' : null,
    student_id: at % 6 === 0 ? student : null,
    source: at % 7 === 0 ? 'SERVICE' : null,
    recommendation_id: at % 8 === 0 ? recommendation : null,
    event_timestamp: 1_700_000_000 - at,
  };
}

export async function record(fields: object, to = api): Promise<Interaction> {
  const { status, body } = await to.post('/user-interactions', fields);
  expect(status).toBe(201);
  // Receipt times have a precision of one millisecond, so a larger gap makes the order certain.
  await sleep(2);
  return body;
}

export async function list(query: Record<string, string> = {}, from = api): Promise<Answer> {
  const beganMs = performance.now();
  const answer = await from.get(`/user-interactions?${new URLSearchParams(query)}`);
  const { interactions: found = [], next_cursor: cursor = null } = answer.body;
  const left = Number(query.limit ?? 100) - found.length;
  // After a second, a page ends early, which happens only if the machine stalls. The next page continues it.
  if (performance.now() - beganMs < 1_000 || cursor === null || left <= 0) return answer;
  const { body } = await list({ ...query, limit: String(left), cursor }, from);
  return { ...answer, body: { ...body, interactions: [...found, ...body.interactions] } };
}
export const idsOf = ({ body }: Answer) =>
  body.interactions.map(({ interaction_id }: Interaction) => interaction_id);
export const newestFirst = (matches: (one: Interaction) => boolean = () => true) =>
  recorded
    .filter(matches)
    .toReversed()
    .map(({ interaction_id }) => interaction_id);
