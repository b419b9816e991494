import type { BytesInFlight } from '../../admission/bytes-in-flight.ts';
import type { Config } from '../../config.ts';
import type { SignedCursors } from '../../keys/signed-cursors.ts';
import type { Readiness } from '../../postgres/health/readiness.ts';
import type { Pool } from '../../postgres/pool.ts';
import type { SharedPool } from '../../postgres/shared-pool.ts';

/** The dependencies of the admin API's operations. */
export interface AdminParts {
  readonly config: Config;
  readonly pool: Pool;
  /** The cursors of the service: the login of the admin API may not read their key. */
  readonly cursors: SignedCursors;
  /** The connections of the service, to read what belongs to one organisation. */
  readonly shared: SharedPool;
  readonly bytesInFlight: BytesInFlight;
  readonly readiness: Readiness;
}
