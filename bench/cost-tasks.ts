import { type Bench, median } from './case.ts';
import { sendAtRate, withConnections } from './http-load.ts';
import { expectRecorded, interactionRequest, interactionRequests } from './interactions.ts';
import { createTenants, storeReferences, type Tenant } from './tables.ts';
import { countOutcomes, uploadRequests } from './upload.ts';
import { type Usage, usageOf } from './usage.ts';

/** The number of distinct items in the interactions, which is also the number of students. */
const items = 5_000;

/** A steady load, and the number of records or interactions that it stores. */
export interface Task {
  readonly each: number;
  readonly work: () => Promise<unknown>;
}

export function uploadTask(
  bench: Bench,
  { perBody, perSecond, seconds }: { perBody: number; perSecond: number; seconds: number },
): Task {
  const each = perBody * perSecond * seconds;
  const requests = uploadRequests(bench, { type: 'transactions', count: each, seed: 7, perBody });
  const work = () =>
    withConnections(bench.service.port, 8, (open) =>
      sendAtRate(open, requests, { perSecond, seconds }, (answer) => countOutcomes([answer])),
    );
  return { each, work };
}

export function interactionTask(
  { service }: Bench,
  requests: readonly Buffer[],
  { perSecond, seconds }: { perSecond: number; seconds: number },
): Task {
  const work = () =>
    withConnections(service.port, 64, (open) =>
      sendAtRate(open, requests, { perSecond, seconds }, expectRecorded),
    );
  return { each: perSecond * seconds, work };
}

/** Creates interactions for the organisation that also uploads records. */
export async function interactionsOfOne({ cluster, tenant }: Bench): Promise<Buffer[]> {
  await storeItems(cluster, [tenant], items);
  return interactionRequests(tenant, items);
}

/** Creates interactions for many organisations, interleaving the organisations. */
export async function interactionsOfMany({ cluster }: Bench, organisations: number): Promise<Buffer[]> {
  const many = await createTenants(cluster, organisations);
  const perTenant = items / organisations;
  await storeItems(cluster, many, perTenant);
  return Array.from({ length: perTenant }, (_, at) =>
    many.map((each) => interactionRequest(each, at + 1, at + 1)),
  ).flat();
}

async function storeItems(
  cluster: Bench['cluster'],
  tenants: readonly Tenant[],
  count: number,
): Promise<void> {
  const ids = tenants.map(({ organisationId }) => organisationId);
  for (const type of ['shops', 'customers'] as const) await storeReferences(cluster, ids, type, count);
}

/** Returns the task's resource usage per record or interaction. */
export async function usageOfEach(bench: Bench, { each, work }: Task): Promise<Usage> {
  const used = await usageOf(bench, work);
  return eachPart(used, (part) => used[part] / each);
}

/** Returns the median of each kind of usage separately. */
export function medianUsage(used: readonly [Usage, ...Usage[]]): Usage {
  return eachPart(used[0], (part) => median(used.map((usage) => usage[part])));
}

function eachPart(like: Usage, of: (part: keyof Usage) => number): Usage {
  const parts = Object.keys(like) as (keyof Usage)[];
  return Object.fromEntries(parts.map((part) => [part, of(part)])) as unknown as Usage;
}
