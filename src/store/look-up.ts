import { type ResourceType, referencesOf } from '../registry/resources.ts';
import type { Client } from './pool.ts';
import { exists, perType } from './tables.ts';

export interface LookedUp {
  /** Per reference of the type, in the order of `referencesOf`: the ids that do not exist. */
  readonly missing: readonly ReadonlySet<string>[];
  /** Whether some of the batch are stored already, judged by a few of them. */
  readonly seenBefore: boolean;
  /** Whether records of the type may be waiting among the rejections. */
  readonly hasRejections: boolean;
}

/**
 * One statement that answers three questions about a batch: which of the ids it refers to do not exist, does it look as
 * if it had been sent before, and may records of its type have been rejected. It sends ids alone, each once. In the ordinary case, new records that refer to known ones,
 * it returns one row, the proof.
 */
const statement = perType((type) => {
  const references = referencesOf(type);
  const missing = references.map(
    (reference, at) => `
      select ${at} as question, i.id
      from organisations o cross join unnest($${at + 3}::uuid[]) as i(id)
      where o.organisation_id = $1 and not ${exists(reference.type, 'i.id')}`,
  );
  const seen = `
      select ${references.length} as question, i.id
      from organisations o cross join unnest($2::uuid[]) as i(id)
      where o.organisation_id = $1 and ${exists(type, 'i.id')}`;
  // Proof that there is an organisation at all: without one every statement finds nothing, and that would read as well.
  const proof = `
      select -1 as question, o.organisation_id from organisations o where o.organisation_id = $1`;
  const rejected = `
      select -2 as question, r.organisation_id from open_rejections r where r.organisation_id = $1 and r.type = '${type}'`;
  return { name: `look-up ${type}`, text: [...missing, seen, proof, rejected].join('\n      union all') };
});

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
  if (!rows.some(({ question }) => question === -1)) throw new Error('the organisation is not there');
  for (const { question, id } of rows) missing[question]?.add(id);
  const seenBefore = rows.some(({ question }) => question === referenced.length);
  const hasRejections = rows.some(({ question }) => question === -2);
  return { missing, seenBefore, hasRejections };
}
