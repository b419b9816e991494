import { Redis } from 'ioredis';
import { limits } from '../limits.ts';

/** The Redis or Valkey server may become unavailable and come back at any time. */
export interface SharedCounts {
  readonly client: Redis;
  close(): void;
}

export function connectSharedCounts(
  url: string,
  onChange: (isThere: boolean, error?: Error) => void,
): SharedCounts {
  const client = new Redis(url, {
    // A command that cannot be sent at once fails, and the request is counted in memory instead of waiting.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: limits.redisTimeoutMs,
    // Drop a connection that has stopped responding, so that later requests do not wait for it.
    socketTimeout: 2 * limits.redisTimeoutMs,
    connectTimeout: 5 * limits.redisTimeoutMs,
    retryStrategy: () => limits.redisRetryMs,
    connectionName: 'intake-server',
  });
  let isThere: boolean | undefined;
  const tell = (now: boolean, error?: Error) => {
    if (isThere !== now) onChange(now, error);
    isThere = now;
  };
  client.on('ready', () => tell(true));
  client.on('error', (error: Error) => tell(false, error));
  client.on('close', () => tell(false));
  return {
    client,
    close() {
      isThere = false;
      client.disconnect();
    },
  };
}
