// changes/: the change log, which records the ids that each transaction stored, and the feed that is read from it.

import { randomUUIDv7 } from 'node:crypto';
import type { Statement } from '../postgres/one-exchange.ts';
import type { Client } from '../postgres/pool.ts';
import { expectRows } from '../postgres/transactions.ts';

/** The ids of what was created or changed, as a binary array. */
export interface ChangedIds {
  readonly count: number;
  readonly ids: Buffer;
}

/** Adds a row to the change log, in the transaction that stored what it tells of. */
export async function addChange(
  client: Client,
  organisationId: string,
  type: string,
  changed: ChangedIds,
): Promise<void> {
  expectRows(await client.query(changeStatement(organisationId, type, changed)), 1, 'a change');
}

export function changeStatement(organisationId: string, type: string, { count, ids }: ChangedIds): Statement {
  return {
    name: 'add change',
    text: 'insert into changes (organisation_id, change_id, type, size, ids) values ($1, $2, $3, $4, $5)',
    values: [organisationId, randomUUIDv7(), type, count, ids],
  };
}
