import type { Bench } from './case.ts';
import { type Answer, requestOf } from './http-load.ts';
import { referenceId } from './records.ts';
import type { Tenant } from './tables.ts';

/** Creates an interaction with every field filled. Only the item, the student and the user vary. */
export function interactionOf(item: number, student: number) {
  return {
    ...sameForAll,
    user_id: `visitor-${student}`,
    student_id: referenceId('customers', student),
    item_id: referenceId('shops', item),
  };
}

export function interactionRequest({ key }: Tenant, item: number, student: number, headers = ''): Buffer {
  const body = Buffer.from(JSON.stringify(interactionOf(item, student)));
  return requestOf('/user-interactions', key, body, headers);
}

export const sameForAll = {
  interaction_type: 'PAGE_VIEW',
  item_type: 'SHOP',
  city: 'Leeds',
  country: 'GB',
  platform: 'WEB',
  event_timestamp: '2026-03-14T09:26:53Z',
  source: 'SERVICE',
  recommendation_id: '0a1b2c3d-4e5f-4061-8273-94a5b6c7d8e9',
} as const;

/** Creates requests in which each item and each student occurs once. */
export function interactionRequests(tenant: Tenant, count: number, headers?: string): Buffer[] {
  return Array.from({ length: count }, (_, at) =>
    interactionRequest(tenant, 1 + at, 1 + ((at * 7 + 3) % count), headers),
  );
}

export function expectRecorded({ status, body }: Answer): void {
  if (status !== 201)
    throw new Error(`an interaction was answered ${status}: ${body.toString().slice(0, 500)}`);
}

/** Fails unless the table contains exactly the answered interactions. */
export async function expectStored({ cluster }: Bench, count: number): Promise<void> {
  const [row] = await cluster.query<{ stored: string }>('select count(*) as stored from public.interactions');
  if (Number(row?.stored) !== count) {
    throw new Error(`${count} interactions were answered and ${row?.stored} are stored`);
  }
}

/** Creates a copy of the service's table with the same key, indexes and partitions. */
export async function createBareInteractions({ cluster }: Bench): Promise<void> {
  await cluster.query('drop table if exists bare.interactions');
  await cluster.query(
    'create table bare.interactions (like public.interactions including all) partition by range (interaction_id)',
  );
  const partitions = await cluster.query<{ name: string; bounds: string }>(
    `select relname as name, pg_get_expr(relpartbound, oid) as bounds from pg_class
     where oid in (select inhrelid from pg_inherits where inhparent = 'public.interactions'::regclass)`,
  );
  for (const { name, bounds } of partitions) {
    await cluster.query(`create table bare.${name} partition of bare.interactions ${bounds}`);
  }
}
