export const peopleMax = 5_000;

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export interface ReadIds {
  /** Each once. */
  readonly ids: readonly string[];
  readonly wrong: readonly string[];
}

/** Ids as people paste them. Ids of customers are UUIDs, apart by anything else; ids of users are any text, one a line. */
export function readIds(text: string, kind: 'customers' | 'users'): ReadIds {
  const parts = text.split(kind === 'customers' ? /[\s,;"']+/ : /\r?\n/).map((part) => part.trim());
  const given = [...new Set(parts.filter((part) => part !== ''))];
  const isValid = (id: string) => (kind === 'customers' ? uuid.test(id) : id.length <= 255);
  return { ids: given.filter(isValid), wrong: given.filter((id) => !isValid(id)) };
}
