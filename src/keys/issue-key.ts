import { endApiKeyAfter, insertApiKey } from '../store/api-keys.ts';
import { type Client, inTransaction, type Pool } from '../store/pool.ts';
import { hashKey, makeKey, type NewKey } from './key-format.ts';

/** Makes a key and stores its hash. What is returned is the only time the key is seen. */
export async function issueKey(
  pool: Pool | Client,
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

/**
 * Issues a successor with the same permissions and lets the old key end after the grace; both work meanwhile. Undefined
 * if the old one is not in use.
 */
export async function rotateKey(pool: Pool, keyId: string, graceMs: number): Promise<NewKey | undefined> {
  return inTransaction(pool, async (client) => {
    const old = await endApiKeyAfter(client, keyId, graceMs);
    return old && issueKey(client, old.organisationId, old.permissions);
  });
}
