import { deriveId } from '../../../parsing/values/derived-id.ts';
import { grouped, say } from '../../terminal/terminal.ts';

export type Named = 'customers' | 'users';

const shownMax = 20;

/** Says how to write a key. A user's key is one column, because id_from names only the columns of a record's id. */
export function keyForm(named: Named): string {
  const list = `, or as '["DE","100500"]' if "id_from" has several columns`;
  return `write it as in the file${named === 'users' ? '' : list}`;
}

/**
 * Returns the id that upload derives from a key, which is a text, or a JSON list with a text for each column of id_from. Returns
 * undefined if it is not a key, because an id that is derived in another way could be somebody else's.
 */
export function idOfKey(named: Named, text: string): string | undefined {
  const columns = text.trimStart().startsWith('[') ? listIn(text) : [text];
  const key = columns.map((column) => column.trim());
  const isKey = key.length > 0 && !key.includes('') && (named === 'customers' || key.length === 1);
  return isKey ? deriveId(named, key) : undefined;
}

function listIn(text: string): string[] {
  try {
    const list: unknown[] = JSON.parse(text);
    return list.every((column) => typeof column === 'string') ? list : [];
  } catch {
    return [];
  }
}

/** Shows on a terminal which key became which id. Standard error is often a log otherwise, which must not contain ids. */
export function sayKeys(keys: Iterable<readonly [id: string, key: string]>): void {
  if (!process.stderr.isTTY) return;
  const lines = [...keys].map(([id, key]) => `Key ${key} is id ${id}.`);
  if (lines.length > 0) say(...lines.slice(0, shownMax));
  if (lines.length > shownMax) say(`and ${grouped(lines.length - shownMax)} more keys`);
}
