import { ArrayWriter, arrayHeaderBytes, uuidArrayStride } from '../postgres/binary/array-writer.ts';
import { pickElements, uuidsOf } from '../postgres/binary/encoded-rows.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { exists } from '../records/tables.ts';
import { sentReferencesOf } from '../registry/upload-types.ts';
import type { KnownIds } from './known-ids.ts';

/** What interactions can refer to: students, and items of each kind. */
export const interactionReferences = sentReferencesOf('interactions');

/** Its row proves that there is an organisation at all. */
const text = `
  select ${interactionReferences
    .map(
      ({ type }, at) => `
      (select string_agg(i.id::text, ',') from unnest($${at + 2}::uuid[]) as i(id)
       where not ${exists(type, 'i.id')}) as missing_${at}`,
    )
    .join(',')}
  from organisations o where o.organisation_id = $1`;

/**
 * Which of the ids do not exist: an array of ids per reference, in the order of `interactionReferences`, and as many sets.
 * Those that are known to exist are not looked for, and those that are found are known from then on.
 */
export async function missingAmong(
  client: Client | Pool,
  organisationId: string,
  referenced: readonly Buffer[],
  known: KnownIds,
): Promise<readonly ReadonlySet<string>[]> {
  const asked = referenced.map((ids, at) => unknownAmong(ids, at, organisationId, known));
  if (asked.every(({ ids }) => ids.length === 0)) return asked.map(() => new Set());
  const { rows } = await client.query<Record<string, string | null>>({
    name: 'look up references of interactions',
    text,
    values: [organisationId, ...asked.map(({ array }) => array)],
  });
  const [row] = rows;
  if (!row) throw new Error('the organisation is not there');
  return asked.map(({ ids, type }, at) => {
    const missing = new Set(row[`missing_${at}`]?.split(','));
    for (const id of ids) if (!missing.has(id)) known.add(organisationId, type, id);
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

/** The ids that one interaction refers to, as those of a batch are given. */
export function referencedBy({
  itemType,
  itemId,
  studentId,
}: {
  readonly itemType: string;
  readonly itemId: string;
  readonly studentId: string | null;
}): Buffer[] {
  return interactionReferences.map(({ where }) => {
    const ids = new ArrayWriter('uuid', arrayHeaderBytes + uuidArrayStride);
    if (where?.value === itemType) ids.append(itemId);
    else if (where === undefined && studentId !== null) ids.append(studentId);
    return ids.finish();
  });
}
