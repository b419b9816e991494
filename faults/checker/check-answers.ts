import { ask } from '../clients/client.ts';
import type { Organisation } from '../world/organisation.ts';
import type { World } from '../world/world.ts';
import type { Violate } from './check-records.ts';

/** Compares what the API says about an organisation with its tables. No client may be working. */
export async function checkAnswers(
  world: World,
  organisation: Organisation,
  violate: Violate,
): Promise<void> {
  const stage = { world, organisation };
  const reply = await ask(stage, 'GET', '/v1/data');
  if (reply?.status !== 200) return violate('I7: no overview at the end', { status: reply?.status });
  for (const { type, records, open_rejections } of reply.body.types) {
    const table = type.replaceAll('-', '_');
    const [stored] = await world.database.query<{ count: number }>(
      `select count(*)::integer as count from ${table} where organisation_id = $1`,
      [organisation.id],
    );
    const [rejected] = await world.database.query<{ count: number }>(
      'select count(*)::integer as count from rejections where organisation_id = $1 and type = $2',
      [organisation.id, type],
    );
    if (records !== stored?.count || open_rejections !== rejected?.count)
      violate('I5: the overview differs from the tables', {
        slug: organisation.slug,
        type,
        shown: { records, open_rejections },
        real: { records: stored?.count, open_rejections: rejected?.count },
      });
  }
  for (const [requestId, counts] of organisation.receipts) {
    const receipt = await ask(stage, 'GET', `/v1/requests/${requestId}`);
    if (receipt?.status !== 200)
      violate('I11: an answered upload has no receipt', { requestId, reply: receipt?.status });
    else if (!sameCounts(receipt.body.counts, counts) || !receipt.body.complete)
      violate('I5: a receipt differs from its answer', { requestId, receipt: receipt.body.counts, counts });
  }
}

const sameCounts = (one: Record<string, number>, other: Readonly<Record<string, number>>) =>
  Object.entries(other).every(([name, count]) => one[name] === count);
