import { epochOf } from '../changes/change-cursor.ts';
import type { LogState } from '../changes/change-log.ts';
import type { DeltaTable } from './table/delta-table.ts';
import type { Txn } from './table/table-state.ts';

/** The last change in a lake or in one of its tables, and the epoch in which the change got its number. */
export interface LastChange {
  readonly number: number;
  readonly epoch: string;
}

export function txnOf({ number, epoch }: LastChange): Txn {
  return { appId: epoch, version: number };
}

/** All earlier changes to records of the table's type are in the table as well. */
export function lastChangeIn({ positions }: DeltaTable): LastChange {
  let last: LastChange = { number: 0, epoch: '' };
  for (const [epoch, number] of positions)
    if (epoch !== 'fence' && number >= last.number) last = { number, epoch };
  return last;
}

/**
 * If it is not, a server was lost before its standby had received the change, or an older database was restored. A
 * change that is older than all known epochs counts as part of the log: tables are checked whenever an epoch begins.
 */
export function isInLog(
  { number, epoch }: LastChange,
  { last, epochs }: Pick<LogState, 'last' | 'epochs'>,
): boolean {
  const isKnown = number >= (epochs[0]?.first ?? Number.POSITIVE_INFINITY);
  return number <= last && (!isKnown || epochOf(epochs, number) === epoch);
}
