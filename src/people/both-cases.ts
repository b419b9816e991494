// people/: finds what is stored about people, to erase it or to hand it out.

import { isUuid } from '../registry/fields.ts';

/** A user may be named by a UUID in capitals, and is stored as it was sent. */
export function inBothCases(id: string): string[] {
  return isUuid(id) ? [id, id.toUpperCase()] : [id];
}
