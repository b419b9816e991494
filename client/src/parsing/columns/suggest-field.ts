import { resources, type UploadType } from '../../generated/resources.ts';
import { schemas } from '../../generated/schemas.ts';
import { nearest } from './nearest.ts';

/** Returns the field that a column name resembles, ignoring fields that already have a column. */
export function suggestField(
  column: string,
  type: UploadType,
  taken: ReadonlySet<string>,
): string | undefined {
  const name = lettersOf(column);
  const free = Object.keys(schemas[type].properties).filter((field) => !taken.has(field));
  const same = free.find((field) => lettersOf(field) === name);
  if (same !== undefined) return same;
  if (name === 'id' || name === 'uuid') return free.find((field) => field === resources[type].idField);
  if (name.length < 4) return undefined;
  const best = nearest(name, free.map(lettersOf), name.length < 8 ? 1 : 2);
  return free.find((field) => lettersOf(field) === best);
}

/** Normalises a name: "Shop ID", shopId and SHOP-ID all become shopid. */
function lettersOf(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
}
