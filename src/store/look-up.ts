import { type ResourceType, referencesOf } from '../registry/resources.ts';
import type { Row } from '../registry/validate.ts';
import { uuidArray } from './binary-array.ts';
import type { Client } from './pool.ts';
import { perType, tableOf } from './tables.ts';

export interface LookedUp {
  /** Per reference of the type, in the order of `referencesOf`: the ids that do not exist. */
  readonly missing: readonly ReadonlySet<string>[];
  /** The ids of this type that are stored already. */
  readonly stored: ReadonlySet<string>;
}

/**
 * One statement that answers two questions about a batch: which of the ids it refers to do not exist, and which of its
 * own are stored already. It sends ids alone, each once. In the ordinary case, new records that refer to known ones,
 * it returns no row. `offset 0` keeps PostgreSQL from joining: a join planned while the table was small would hash all of
 * an organisation's rows, and go on doing so when there are a billion of them.
 */
const statement = perType((type) => {
  const { name, id } = tableOf(type);
  const references = referencesOf(type);
  const missing = references.map(({ type: referenced }, at) => {
    const target = tableOf(referenced);
    return `
      select ${at} as question, i.id
      from organisations o cross join unnest($${at + 3}::uuid[]) as i(id)
      where o.organisation_id = $1 and not exists (
        select from ${target.name} t where t.organisation_id = o.organisation_id and t.${target.id} = i.id offset 0)`;
  });
  const stored = `
      select ${references.length} as question, i.id
      from organisations o cross join unnest($2::uuid[]) as i(id)
      where o.organisation_id = $1 and exists (
        select from ${name} t where t.organisation_id = o.organisation_id and t.${id} = i.id offset 0)`;
  return { name: `look-up ${type}`, text: [...missing, stored].join('\n      union all'), references };
});

export async function lookUp(
  client: Client,
  organisationId: string,
  type: ResourceType,
  rows: readonly Row[],
): Promise<LookedUp> {
  const { name, text, references } = statement(type);
  const positions = [0, ...references.map(({ position }) => position)];
  const ids = positions.map((position) => uuidArray(new Set(rows.map((row) => row[position] as string))));
  const { rows: found } = await client.query<{ question: number; id: string }>({
    name,
    text,
    values: [organisationId, ...ids],
  });
  const answers = positions.map(() => new Set<string>());
  for (const { question, id } of found) answers[question]?.add(id);
  return { missing: answers.slice(0, -1), stored: answers.at(-1) as Set<string> };
}
