import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { ApiError } from './request.ts';
import { sessionKey } from './session.ts';

const triesMax = 3;
const transient: ReadonlySet<number> = new Set([0, 429, 502, 503, 504]);

function isTransient(error: unknown): boolean {
  return error instanceof ApiError && transient.has(error.status);
}

/** Returns the delay that the service requested, or else 1, 2 and then 4 seconds. */
function retryDelayMs(failures: number, error: unknown): number {
  const wantedS = error instanceof ApiError ? error.retryAfterS : null;
  return 1_000 * Math.min(wantedS ?? 2 ** failures, 30);
}

function endSessionIfRefused(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) queryClient.setQueryData(sessionKey, null);
}

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: endSessionIfRefused }),
  mutationCache: new MutationCache({ onError: endSessionIfRefused }),
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (failures, error) => isTransient(error) && failures + 1 < triesMax,
      retryDelay: retryDelayMs,
    },
  },
});
