import { resources, type UploadType } from '../../generated/resources.ts';
import { schemas } from '../../generated/schemas.ts';
import { namedBy, userField } from '../values/derived-id.ts';
import { formats } from '../values/formats.ts';

interface SuggestedIds {
  readonly idFrom?: readonly [string];
  readonly reasons: readonly string[];
}

const none: SuggestedIds = { reasons: [] };

/**
 * Suggests the column from which ids are derived, with the reason. Suggests nothing if all ids and references are UUIDs, or if
 * the id column has a key several times: records with the same id would replace each other. `derivesUsers` says whether users of
 * interactions are derived anyway.
 */
export function suggestIdFrom(
  type: UploadType,
  columns: Readonly<Record<string, string>>,
  cellsOf: (column: string) => readonly string[],
  derivesUsers: boolean,
): SuggestedIds {
  const { idField } = resources[type];
  const keysIn = (column: string) => cellsOf(column).map((cell) => cell.trim());
  const isKey = (text: string) => text !== '' && !formats.uuid.test(text);
  const keyIn = (column: string) => keysIn(column).find(isKey);
  const names = Object.keys(columns);
  const fieldOf = (column: string) => columns[column] ?? '';
  if (!Object.hasOwn(schemas[type].properties, idField)) {
    const user = names.find((column) => fieldOf(column) === userField);
    const key = user && keyIn(user);
    return key !== undefined && !derivesUsers
      ? {
          reasons: [
            `column "${user}" has ${JSON.stringify(key)}, which is sent unchanged; add "id_from": [] if customers have such keys`,
          ],
        }
      : none;
  }
  const idColumn = names.find((column) => fieldOf(column) === idField);
  const [first] = names;
  if (idColumn === undefined) {
    const hasUuids = names.some((column) => keysIn(column).some((text) => formats.uuid.test(text)));
    if (first === undefined || !['', userField].includes(fieldOf(first)) || hasUuids) return none;
    const keys = keysIn(first).filter(isKey);
    // One empty cell may belong to a line of totals.
    if (keys.length < Math.max(2, cellsOf(first).length - 1) || repeatedIn(keys) !== undefined) return none;
    return proposal(
      first,
      `no column matches ${idField}, and each record has its own ${JSON.stringify(first)}, such as ${JSON.stringify(keys[0])}; check that it never changes`,
    );
  }
  const keyed = [idColumn, ...names].find(
    (column) => namedBy(fieldOf(column)) && keyIn(column) !== undefined,
  );
  if (keyed === undefined) return none;
  const repeated = repeatedIn(keysIn(idColumn).filter(isKey));
  if (repeated !== undefined)
    return {
      reasons: [
        `column "${idColumn}" has ${JSON.stringify(repeated)} several times; set "id_from" to the columns that identify a record`,
      ],
    };
  const where = keyed === idColumn ? 'the column' : `column "${keyed}"`;
  return proposal(idColumn, `${where} has ${JSON.stringify(keyIn(keyed))}`);
}

function proposal(column: string, why: string): SuggestedIds {
  return { idFrom: [column], reasons: [`"id_from": ${JSON.stringify([column])}, because ${why}`] };
}

function repeatedIn(keys: readonly string[]): string | undefined {
  return keys.find((key, at) => keys.indexOf(key) !== at);
}
