// people/: finds the data stored about people, for erasures and access requests.

import { isUuid } from '../registry/fields.ts';

/**
 * Returns a user's id in lower and upper case if it is a UUID. Ids are stored as they were sent, which may be in upper
 * case.
 */
export function inBothCases(id: string): string[] {
  return isUuid(id) ? [id, id.toUpperCase()] : [id];
}
