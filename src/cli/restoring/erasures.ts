import { ledgerLines } from '../../operator/erasure-ledger.ts';
import { databaseTime } from '../../postgres/transactions.ts';
import { refuseArguments } from '../arguments/help.ts';
import { writeOut } from '../arguments/operator.ts';
import { withPool } from '../database/with-pool.ts';

export async function run(args: string[]): Promise<void> {
  refuseArguments('erasures', args);
  await withPool(
    async (pool) => {
      for await (const lines of ledgerLines(pool, await databaseTime(pool))) await writeOut(lines);
    },
    { usesClock: false },
  );
}
