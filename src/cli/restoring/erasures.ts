import { ledgerLines } from '../../operator/erasure-ledger.ts';
import { refuseArguments } from '../arguments/help.ts';
import { writeOut } from '../arguments/write-out.ts';
import { withPool } from '../database/with-pool.ts';

/** Writes the ledger of erased people for after-restore: one hash per line, and at the end their number. */
export async function run(args: string[]): Promise<void> {
  refuseArguments('erasures', args);
  await withPool(async (pool) => {
    for await (const lines of ledgerLines(pool)) await writeOut(lines);
  });
}
