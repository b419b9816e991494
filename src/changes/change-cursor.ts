// changes/: the change log, which records the ids that each transaction stored, and the feed that reads the log.

import type { CursorSigner } from '../keys/signed-cursors.ts';
import { optionalForm } from '../registry/fields.ts';

/** A reader continues at this change, after the first `offset` of its ids. */
export interface Position {
  readonly number: number;
  readonly offset: number;
  /** The number of ids in the change, or 0 if none of them has been read. */
  readonly size: number;
  /** The epoch in which the last change that was read got its number. */
  readonly epoch: string;
}

/** An epoch's id, and the first change number that the epoch's server assigned. */
export interface Epoch {
  readonly id: string;
  readonly first: number;
}

/** The epoch of number 0, and of numbers assigned before epochs were recorded. */
const noEpoch = '00000000';

export function epochOf(epochs: readonly Epoch[], number: number): string {
  return epochs.findLast(({ first }) => first <= number)?.id ?? noEpoch;
}

/** Everything before the change has already been read. */
export function startOf(number: number, epochs: readonly Epoch[]): Position {
  return { number, offset: 0, size: 0, epoch: epochOf(epochs, number - 1) };
}

export function afterChange({ number, epoch }: Pick<Position, 'number' | 'epoch'>): Position {
  return { number: number + 1, offset: 0, size: 0, epoch };
}

/**
 * If a log does not contain the changes that were read up to a position, a server was lost before its standby had
 * received them, and the standby has assigned their numbers to other changes.
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

export class ChangeCursors {
  readonly #signer: CursorSigner;

  constructor(signer: CursorSigner) {
    this.#signer = signer;
  }

  write(position: Position): string {
    return this.within(position)(position.offset);
  }

  /** All cursors within a change share one signature, because it covers the change's size but not the offset. */
  within({ number, size, epoch }: Pick<Position, 'number' | 'size' | 'epoch'>): (offset: number) => string {
    const signature = this.#signer.sign(`${number}-${size}-${epoch}`);
    return (offset) => `${number}-${offset}-${size}-${epoch}-${signature}`;
  }

  /** Returns undefined if this database did not sign the cursor for this organisation. */
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
    'must be a cursor that this organisation got from the change feed or from the Changes-Cursor header of an export; ' +
    'without one, empty your copy and start again with an export',
} as const;

export const changeCursor = optionalForm(form, notACursor, {
  pattern: form.source.replaceAll('\\d', '[0-9]').replaceAll('\\w', '0-9A-Za-z_'),
  description: 'a cursor from this feed or from an export; default is the oldest change kept',
});
