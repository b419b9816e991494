import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';

/** Returns values for a person that occur nowhere else. */
export function newPerson() {
  const mark = randomUUID();
  return {
    customer_id: randomUUID(),
    user_id: randomUUID(),
    visitor: `visitor ${mark}`,
    gender: `gender ${mark}`,
    city: `city ${mark}`,
    /** The modes in which the customer and the user of the device were erased. */
    customerErased: new Set<string>(),
    visitorErased: new Set<string>(),
  };
}

export type Person = ReturnType<typeof newPerson>;

/** A stored interaction, by the values that were sent. */
export interface Seen {
  readonly id: string;
  readonly student: Person | undefined;
  readonly device: Person | undefined;
  readonly city: string;
}

/** Returns the modes in which an interaction's person was erased. Next to a student, the user proves nothing. */
export function erasedIn({ student, device }: Pick<Seen, 'student' | 'device'>): ReadonlySet<string> {
  return student?.customerErased ?? device?.visitorErased ?? new Set();
}

/** Returns the user that a response shows. */
export function shownUser(device: Person | undefined): string | null {
  return device && device.visitorErased.size === 0 ? device.visitor : null;
}

/** Compares each recorded interaction with what is left of it. */
export function expectSeen(seen: readonly Seen[], stored: ReadonlyMap<string, string>): void {
  for (const { id, student, device, city } of seen) {
    const row = JSON.parse(stored.get(`interactions ${id}`) ?? 'null');
    const modes = erasedIn({ student, device });
    const left = row && { student_id: row.student_id, user_id: row.user_id, city: row.city };
    const nobody = { student_id: null, user_id: null, city: null };
    if (modes.size === 0)
      expect(left).toEqual({ student_id: student?.customer_id ?? null, user_id: shownUser(device), city });
    // The order of two erasures determines whether anything is left.
    else if (modes.size > 1) expect([null, nobody]).toContainEqual(left);
    else expect([modes, left]).toEqual([modes, modes.has('delete') ? null : nobody]);
  }
}
