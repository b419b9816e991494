import { type ResourceType, referencesOf, resourceTypes } from '../../src/registry/resources.ts';
import { type Bench, type Case, type Comparison, interleave, median, ratiosOf } from '../case.ts';
import { copyRate, openSessions, writeCopyFiles } from '../copy.ts';
import type { Psql } from '../psql.ts';
import { type Recipe, referencesDefault } from '../records.ts';
import { bareTable, publicTable, storeReferences } from '../tables.ts';
import { uploadRate, uploadRequests } from '../upload.ts';

const goal = { atLeast: 0.5 };

/**
 * Measures one type after another, each with its own rounds, because the bodies for all types would not fit in memory
 * at the same time.
 */
export const types: Case = {
  name: 'types',
  what: 'new records of every type compared with psql \\copy of the same rows',
  async run(bench) {
    const sessions = await openSessions(bench, 2);
    const comparisons: Comparison[] = [];
    for (const type of resourceTypes) {
      const named = { ...bench, progress: (what: string) => bench.progress(`${type}, ${what}`) };
      comparisons.push(await compareType(named, type, sessions));
    }
    return comparisons;
  },
};

async function compareType(bench: Bench, type: ResourceType, sessions: readonly Psql[]): Promise<Comparison> {
  const { cluster, service, connections } = bench;
  const recipe: Recipe = { type, count: Math.ceil(bench.rows / 4), seed: 11 };
  const files = writeCopyFiles(bench, recipe, [1, 2]);
  const requests = uploadRequests(bench, recipe);
  for (const to of referencesOf(type)) {
    await storeReferences(cluster, [bench.tenant.organisationId], to.type, referencesDefault);
  }
  const copy = (count: number) => async () => {
    await cluster.clean(bareTable(type), publicTable(type));
    return copyRate(sessions, files.of(count), recipe);
  };
  const { one, two, intake } = await interleave(bench, {
    one: copy(1),
    two: copy(2),
    intake: async () => {
      await cluster.clean(bareTable(type), publicTable(type));
      return uploadRate({ port: service.port, connections }, requests, { created: recipe.count });
    },
  });
  files.remove();
  const beside = ratiosOf(intake, two);
  return {
    name: `types: ${type}`,
    yardstick: 'psql \\copy',
    unit: 'rows/s',
    bare: one,
    intake,
    ratios: ratiosOf(intake, one),
    goal,
    notes: [`${median(beside).toFixed(2)} of two psql \\copy at once (${Math.round(median(two))} rows/s)`],
  };
}
