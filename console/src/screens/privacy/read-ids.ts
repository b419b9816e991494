export const peopleMax = 5_000;

export type Kind = 'customers' | 'users';

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export interface ReadIds {
  /** The distinct ids. */
  readonly ids: readonly string[];
  readonly wrong: readonly string[];
}

/**
 * Parses pasted ids. Customer ids are UUIDs that are separated by spaces, commas or newlines. User ids are any text, one per
 * line.
 */
export function readIds(text: string, kind: Kind): ReadIds {
  const parts = text.split(kind === 'customers' ? /[\s,;"']+/ : /\r?\n/).map((part) => part.trim());
  const given = [...new Set(parts.filter((part) => part !== ''))];
  const isValid = (id: string) => (kind === 'customers' ? uuid.test(id) : id.length <= 255);
  return { ids: given.filter(isValid), wrong: given.filter((id) => !isValid(id)) };
}
