// changes/: the change log, which records the ids that each transaction stored, and the feed that is read from it.

import { hash } from 'node:crypto';
import { type Field, optional, text } from '../registry/fields.ts';

/** Where a reader continues: at this change, after `offset` of its ids. */
export interface Position {
  readonly number: number;
  readonly offset: number;
}

export function isBefore(one: Position, other: Position): boolean {
  return one.number < other.number || (one.number === other.number && one.offset < other.offset);
}

export function isSame(one: Position, other: Position): boolean {
  return one.number === other.number && one.offset === other.offset;
}

const form = /^(\d{1,15})-(\d{1,6})-([0-9a-f]{8})$/;

/** The cursors of one organisation. Each contains a hash of its id, so a cursor of another organisation is detected. */
export class ChangeCursors {
  readonly #mark: string;

  constructor(organisationId: string) {
    this.#mark = hash('sha256', organisationId).slice(0, 8);
  }

  write({ number, offset }: Position): string {
    return `${number}-${offset}-${this.#mark}`;
  }

  /** Undefined if it is not a cursor of this organisation. */
  read(cursor: string): Position | undefined {
    const [, number, offset, mark] = form.exec(cursor) ?? [];
    return mark === this.#mark ? { number: Number(number), offset: Number(offset) } : undefined;
  }
}

export const changeCursor = {
  ...optional({
    ...text(),
    schema: {
      type: 'string',
      pattern: form.source.replaceAll('\\d', '[0-9]'),
      description: 'the cursor after which to go on; default is the oldest change kept',
    },
  }),
  read(value) {
    return typeof value === 'string' && form.test(value) ? value : notACursor;
  },
} satisfies Field;

export const notACursor = {
  code: 'invalid_format',
  message: "must be a cursor of this organisation's change feed",
} as const;
