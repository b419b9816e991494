import type { AdminConfig, Config } from '../../config.ts';
import type { BytesInFlight } from '../../keys/bytes-in-flight.ts';
import type { FailedKeys } from '../../keys/failed-keys.ts';
import type { Pool } from '../../postgres/pool.ts';
import type { Readiness } from '../../postgres/readiness.ts';

/** The dependencies of the admin API's operations. */
export interface AdminParts {
  readonly config: Config;
  readonly admin: AdminConfig;
  readonly pool: Pool;
  readonly failedKeys: FailedKeys;
  readonly bytesInFlight: BytesInFlight;
  readonly readiness: Readiness;
}
