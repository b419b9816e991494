import { once } from 'node:events';
import { readLedger } from '../operator/erasure-ledger.ts';
import { refuseArguments } from './arguments/help.ts';
import { withPool } from './database/with-pool.ts';

/** Writes the ledger of erased people for after-restore, one hash per line. */
export async function run(args: string[]): Promise<void> {
  refuseArguments('erasures', args);
  await withPool(async (pool) => {
    for await (const entries of readLedger(pool)) {
      const lines = entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
      if (!process.stdout.write(lines)) await once(process.stdout, 'drain');
    }
  });
}
