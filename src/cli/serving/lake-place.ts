import type { Config } from '../../config.ts';
import { LakePlace, WrongPlace } from '../../lake/store/lake-place.ts';
import { openStore } from '../../lake/store/lake-store.ts';
import { createPool } from '../../postgres/pool.ts';
import { commandError } from '../arguments/help.ts';
import { explaining } from '../database/explain-database.ts';

export async function claimPlace(place: LakePlace, lakeUrl: string): Promise<void> {
  await place.claim().catch(explain(lakeUrl));
}

/** Returns a warning if the place cannot be checked yet. */
export async function checkPlace(place: LakePlace | undefined): Promise<string[]> {
  try {
    await place?.check();
    return [];
  } catch (error) {
    if (error instanceof WrongPlace) throw commandError(error.message);
    return [`the lake cannot be read yet: ${(error as Error).message}`];
  }
}

function explain(lakeUrl: string): (error: Error) => never {
  return (error) => {
    const isWrong = error instanceof WrongPlace;
    throw commandError(
      isWrong ? error.message : `the lake at ${lakeUrl} cannot be written: ${error.message}`,
    );
  };
}

export async function takeOver(config: Config, confirmed: string): Promise<void> {
  const { databaseUrl: url, lakeUrl } = config;
  if (lakeUrl === null) throw missingLakeUrl();
  const pool = createPool(config, () => {});
  try {
    const target = { setting: 'DATABASE_URL', url, role: 'intake_serve' } as const;
    await explaining(target, () => pool.query('select keys_can_be_trusted()'));
    const store = openStore(lakeUrl);
    const place = new LakePlace(pool, store, lakeUrl);
    const { isCopied, left, unknown } = await place.takeOver(confirmed).catch(explain(lakeUrl));
    console.log(
      `${lakeUrl} now has the lakes of this database. Start intake-server lake, and restart serve.`,
    );
    if (isCopied)
      console.log("Its files of this database's organisations are deleted, and everything is copied again.");
    if (left !== null)
      console.log(
        `Delete the files at ${left}, the former place. They are no longer updated, and erased people stay in them.`,
      );
    if (unknown.length > 0)
      console.log(
        `Folders there of organisations that have no lake in this database: ${unknown.length}. They are neither updated nor ` +
          'deleted, and erased people stay in them. If nobody needs them any more, delete them:\n' +
          unknown.join('\n'),
      );
  } finally {
    await pool.end();
  }
}

export function missingLakeUrl(): Error {
  return commandError(
    'LAKE_URL is missing; it should be a folder, such as file:///srv/lake, or s3://bucket/prefix',
  );
}
