// changes/: the change log, which records the ids that each transaction stored, and the feed that is read from it.

import { randomUUIDv7 } from 'node:crypto';
import { insertRows, type Statement } from '../postgres/one-exchange.ts';
import type { Client } from '../postgres/pool.ts';
import { expectRows } from '../postgres/transactions.ts';

/** The ids of what was created or changed, as a binary array. */
export interface ChangedIds {
  readonly count: number;
  readonly ids: Buffer;
}

/** The ids of one type that a transaction stored for an organisation. */
export interface Change extends ChangedIds {
  readonly organisationId: string;
  readonly type: string;
}

const columns = ['organisation_id', 'change_id', 'type', 'size', 'ids'];

/** Adds a row to the change log, in the transaction that stored what it tells of. */
export async function addChange(client: Client, change: Change): Promise<void> {
  expectRows(await client.query(changesStatement([change])), 1, 'a change');
}

export function changesStatement(changes: readonly Change[]): Statement {
  const rows = changes.map(({ organisationId, type, count, ids }) => [
    organisationId,
    randomUUIDv7(),
    type,
    count,
    ids,
  ]);
  return insertRows('changes', columns, rows);
}
