import type { QueryClient } from '@tanstack/react-query';
import { sessionKey } from '../../api/session.ts';

/** After a change: every act also adds to the audit log, and a key belongs to several lists. Only what is shown is read. */
export async function readAgain(client: QueryClient): Promise<void> {
  await client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionKey[0] });
}
