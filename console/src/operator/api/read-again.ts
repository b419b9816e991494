import type { QueryClient } from '@tanstack/react-query';
import { sessionKey } from '../../api/session.ts';

/**
 * Invalidates the cache after a change. All data is affected, because every action also adds to the audit log, and a key
 * appears in several lists. Only visible queries are fetched again.
 */
export async function readAgain(client: QueryClient): Promise<void> {
  await client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionKey[0] });
}
