import { insertApiKey } from '../store/api-keys.ts';
import type { Pool } from '../store/pool.ts';
import { hashKey, makeKey, type NewKey } from './key-format.ts';

/** Makes a key and stores its hash. What is returned is the only time the key is seen. */
export async function issueKey(
  pool: Pool,
  organisationId: string,
  permissions: readonly string[],
): Promise<NewKey> {
  const issued = makeKey();
  await insertApiKey(pool, {
    keyId: issued.keyId,
    organisationId,
    keySha256: hashKey(issued.key),
    permissions,
  });
  return issued;
}
