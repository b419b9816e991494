// changes/: the change log, which records the ids that each transaction stored, and the feed that is read from it.

import type { CursorSigner } from '../keys/signed-cursors.ts';
import { optionalForm } from '../registry/fields.ts';

/** Where a reader continues: at this change, after `offset` of its ids. */
export interface Position {
  readonly number: number;
  readonly offset: number;
  /** How many ids the change has; 0 if none of them has been read. */
  readonly size: number;
  /** In which epoch the last change that was read got its number. */
  readonly epoch: string;
}

/** A server that gave numbers, and the first that it gave. */
export interface Epoch {
  readonly id: string;
  readonly first: number;
}

/** Of numbers that were given before epochs were recorded, and of the number 0. */
const noEpoch = '00000000';

/** The epoch in which a change got its number. */
export function epochOf(epochs: readonly Epoch[], number: number): string {
  return epochs.findLast(({ first }) => first <= number)?.id ?? noEpoch;
}

/** The position at which everything before a change has been read. */
export function startOf(number: number, epochs: readonly Epoch[]): Position {
  return { number, offset: 0, size: 0, epoch: epochOf(epochs, number - 1) };
}

/** The position at which this change has been read. */
export function afterChange({ number, epoch }: Pick<Position, 'number' | 'epoch'>): Position {
  return { number: number + 1, offset: 0, size: 0, epoch };
}

/**
 * Whether this log has the changes up to a position that were read. If not, a server was lost before its standby had them,
 * and the standby gave their numbers to other changes.
 */
export function isOfLog({ number, offset, epoch }: Position, epochs: readonly Epoch[]): boolean {
  return epoch === epochOf(epochs, offset > 0 ? number : number - 1);
}

export function isBefore(one: Position, other: Position): boolean {
  return one.number < other.number || (one.number === other.number && one.offset < other.offset);
}

export function isSame(one: Position, other: Position): boolean {
  return one.number === other.number && one.offset === other.offset && one.epoch === other.epoch;
}

const form = /^(\d{1,15})-(\d{1,6})-(\d{1,6})-([0-9a-f]{8})-([\w-]{22})$/;

/** The cursors of one organisation. */
export class ChangeCursors {
  readonly #signer: CursorSigner;

  constructor(signer: CursorSigner) {
    this.#signer = signer;
  }

  write(position: Position): string {
    return this.within(position)(position.offset);
  }

  /** Writes cursors after so many ids of a change. One signature serves all: it covers the size, not the offset. */
  within({ number, size, epoch }: Pick<Position, 'number' | 'size' | 'epoch'>): (offset: number) => string {
    const signature = this.#signer.sign(`${number}-${size}-${epoch}`);
    return (offset) => `${number}-${offset}-${size}-${epoch}-${signature}`;
  }

  /** Undefined if this server's database did not sign it for this organisation. */
  read(cursor: string): Position | undefined {
    const [, number = '', offset = '', size = '', epoch = '', signature = ''] = form.exec(cursor) ?? [];
    if (!this.#signer.isSigned(`${number}-${size}-${epoch}`, signature)) return undefined;
    const position = { number: Number(number), offset: Number(offset), size: Number(size), epoch };
    const isWithin = 0 < position.offset && position.offset < position.size;
    return isWithin || (position.offset === 0 && position.size === 0) ? position : undefined;
  }
}

export const notACursor = {
  code: 'invalid_format',
  message:
    "must be a cursor that this organisation got from the change feed or from an export's header Changes-Cursor; " +
    'without one, start again with an export',
} as const;

export const changeCursor = optionalForm(form, notACursor, {
  pattern: form.source.replaceAll('\\d', '[0-9]').replaceAll('\\w', '0-9A-Za-z_'),
  description: 'a cursor from this feed or from an export; default is the oldest change kept',
});
