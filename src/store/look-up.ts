import { type ResourceType, referencesOf } from '../registry/resources.ts';
import type { Client } from './pool.ts';
import { perType, tableOf } from './tables.ts';

export interface LookedUp {
  /** Per reference of the type, in the order of `referencesOf`: the ids that do not exist. */
  readonly missing: readonly ReadonlySet<string>[];
  /** Whether some of the batch are stored already, judged by a few of them. */
  readonly seenBefore: boolean;
}

/**
 * One statement that answers two questions about a batch: which of the ids it refers to do not exist, and does it look as
 * if it had been sent before. It sends ids alone, each once. In the ordinary case, new records that refer to known ones,
 * it returns no row. `offset 0` keeps PostgreSQL from joining: a join planned while the table was small would hash all of
 * an organisation's rows, and go on doing so when there are a billion of them.
 */
const statement = perType((type) => {
  const references = referencesOf(type);
  const missing = references.map(
    (reference, at) => `
      select ${at} as question, i.id
      from organisations o cross join unnest($${at + 3}::uuid[]) as i(id)
      where o.organisation_id = $1 and not ${exists(reference.type)}`,
  );
  const seen = `
      select ${references.length} as question, i.id
      from organisations o cross join unnest($2::uuid[]) as i(id)
      where o.organisation_id = $1 and ${exists(type)}`;
  return { name: `look-up ${type}`, text: [...missing, seen].join('\n      union all') };
});

function exists(type: ResourceType): string {
  const { name, id } = tableOf(type);
  return `exists (
        select from ${name} t where t.organisation_id = o.organisation_id and t.${id} = i.id offset 0)`;
}

export async function lookUp(
  client: Client,
  organisationId: string,
  type: ResourceType,
  sample: Buffer,
  referenced: readonly Buffer[],
): Promise<LookedUp> {
  const { rows } = await client.query<{ question: number; id: string }>({
    ...statement(type),
    values: [organisationId, sample, ...referenced],
  });
  const missing = referenced.map(() => new Set<string>());
  let seenBefore = false;
  for (const { question, id } of rows) {
    const unknown = missing[question];
    if (unknown) unknown.add(id);
    else seenBefore = true;
  }
  return { missing, seenBefore };
}
