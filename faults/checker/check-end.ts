import { join } from 'node:path';
import { openStore } from '../../src/lake/store/lake-store.ts';
import { checkLake, checkStatistics, searchIds } from '../../test/fault/erasure-mixture/check-tables.ts';
import { bytesInFolder, bytesInStore } from '../../test/support/lake-traces.ts';
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
  const files = world.s3
    ? bytesInStore(openStore(world.lakeUrl), organisation.id)
    : bytesInFolder(join(world.folder, 'lake', organisation.id));
  await checkLake(searched(organisation, violate), files);
  return checked;
}

/** Checks what belongs to no organisation: the logs of the processes and the planner's statistics. */
export async function checkShared(
  world: World,
  organisations: readonly Organisation[],
  violate: Violate,
): Promise<void> {
  for (const { name, bugs, leaks } of [...world.serve, world.lake]) {
    if (bugs.length > 0) violate(`I8: a bug in the log of ${name}`, { lines: bugs.slice(0, 5) });
    if (leaks.length > 0) violate(`I10: a person in the log of ${name}`, { lines: leaks.slice(0, 5) });
  }
  const [first] = organisations;
  if (!first) return;
  // All organisations have people with the same ids, so the statistics may contain those that one of them keeps.
  const isErased = (at: number) => organisations.every(({ people }) => people[at]?.staysErased);
  const people = first.people.filter((_, at) => isErased(at));
  const round = searched(first, violate);
  await world.database.connected((client) =>
    checkStatistics({ ...round, world: { ...round.world, people } }, client),
  );
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
