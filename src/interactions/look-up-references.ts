import { ArrayWriter, arrayHeaderBytes, uuidArrayStride } from '../postgres/binary/array-writer.ts';
import { pickElements, uuidsOf } from '../postgres/binary/encoded-rows.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { exists } from '../records/tables.ts';
import { type SentReference, sentReferencesOf } from '../registry/upload-types.ts';
import type { IdCheck } from '../suppression/suppressions.ts';
import type { KnownIds } from './known-ids.ts';

/** Students and all item types. */
export const interactionReferences = sentReferencesOf('interactions');

/** Returns a row only if the organisation exists. */
const text = `
  select ${interactionReferences
    .map(
      ({ type }, at) => `
      (select string_agg(i.id::text, ',') from unnest($${at + 2}::uuid[]) as i(id)
       where not ${exists(type, 'i.id')}) as missing_${at}`,
    )
    .join(',')}
  from tenants o where o.organisation_id = $1`;

/**
 * Takes and returns ids per reference, in the order of `interactionReferences`. Ids that are found are cached, except with
 * `checking` those of erased people: they may be found until they are swept, and lifting an erasure clears no cache.
 */
export async function missingAmong(
  client: Client | Pool,
  organisationId: string,
  referenced: readonly Buffer[],
  known: KnownIds,
  checking?: Promise<IdCheck>,
): Promise<readonly ReadonlySet<string>[]> {
  const asked = referenced.map((ids, at) => unknownAmong(ids, at, organisationId, known));
  if (asked.every(({ ids }) => ids.length === 0)) return asked.map(() => new Set());
  const { rows } = await client.query<Record<string, string | null>>({
    name: 'look up references of interactions',
    text,
    values: [organisationId, ...asked.map(({ array }) => array)],
  });
  const [row] = rows;
  if (!row) throw new Error('the organisation does not exist');
  const check = await checking;
  return asked.map(({ ids, type }, at) => {
    const missing = new Set(row[`missing_${at}`]?.split(','));
    for (const id of ids)
      if (!missing.has(id) && !check?.mayBeErased(id)) known.add(organisationId, type, id);
    return missing;
  });
}

function unknownAmong(array: Buffer, at: number, organisationId: string, known: KnownIds) {
  const { type } = interactionReferences[at] as (typeof interactionReferences)[number];
  const count = (array.length - arrayHeaderBytes) / uuidArrayStride;
  const all = uuidsOf(array, count) as string[];
  const wanted = [...all.keys()].filter((row) => !known.has(organisationId, type, all[row] as string));
  return { type, ids: wanted.map((row) => all[row] as string), array: pickElements(array, wanted) };
}

interface Referring {
  readonly itemType: string;
  readonly itemId: string;
  readonly studentId: string | null;
}

/** In the same form as a batch's `referenced`. */
export function referencedBy(all: readonly Referring[]): Buffer[] {
  return interactionReferences.map((reference) => {
    const ids = new ArrayWriter('uuid', arrayHeaderBytes + all.length * uuidArrayStride);
    for (const one of all) {
      const id = idOf(reference, one);
      if (id !== null) ids.append(id);
    }
    return ids.finish();
  });
}

export function isMissing(one: Referring, missing: readonly ReadonlySet<string>[]): boolean {
  return interactionReferences.some((reference, at) => {
    const id = idOf(reference, one);
    return id !== null && missing[at]?.has(id) === true;
  });
}

function idOf({ where }: SentReference, { itemType, itemId, studentId }: Referring): string | null {
  if (where === undefined) return studentId;
  return where.value === itemType ? itemId : null;
}
