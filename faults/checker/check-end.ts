import { join } from 'node:path';
import { checkLake, searchIds } from '../../test/fault/erasure-mixture/check-tables.ts';
import type { Organisation } from '../world/organisation.ts';
import type { World } from '../world/world.ts';
import { checkAnswers } from './check-answers.ts';
import { checkLakes } from './check-lake.ts';
import { checkAll, checkReferences, type Violate } from './check-records.ts';
import { checkReport } from './check-report.ts';

/** Checks everything about an organisation at the end. Returns the number of records that were compared. */
export async function checkEnd(world: World, organisation: Organisation, violate: Violate): Promise<number> {
  const checked = await world.database.connected(async (client) => {
    await client.query('begin isolation level repeatable read read only');
    const compared = await checkAll(client, organisation, violate);
    await checkReferences(client, organisation, violate);
    await searchIds(searched(organisation, violate), client);
    return compared;
  });
  await checkAnswers(world, organisation, violate);
  if (organisation.hasReport) await checkReport(world, organisation, violate);
  if (!organisation.hasLake) return checked;
  await checkLakes(world, organisation, violate);
  if (!world.s3)
    await checkLake(searched(organisation, violate), join(world.folder, 'lake', organisation.id));
  return checked;
}

function searched({ id: organisationId, people, slug }: Organisation, violate: Violate) {
  const kept = people.filter(({ isErased }) => !isErased);
  const nobody = { strangers: [], shops: [], laterShops: [] };
  return {
    organisationId,
    world: { people, students: { erased: [], kept }, ...nobody },
    violate: (kind: string, detail: unknown) => violate(`I10: ${kind}`, { slug, detail }),
  };
}
