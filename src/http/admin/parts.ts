import type { BytesInFlight } from '../../admission/bytes-in-flight.ts';
import type { Config } from '../../config.ts';
import type { SignedCursors } from '../../keys/signed-cursors.ts';
import type { SharedPool } from '../../postgres/cluster/node-pools.ts';
import type { Readiness } from '../../postgres/health/readiness.ts';
import type { ServerState } from '../../postgres/health/server-state.ts';
import type { Pool } from '../../postgres/pool.ts';

export interface AdminParts {
  readonly config: Config;
  readonly pool: Pool;
  /** Uses the service's database login, because the admin API's login may not read the key that signs cursors. */
  readonly cursors: SignedCursors;
  readonly shared: SharedPool;
  readonly bytesInFlight: BytesInFlight;
  readonly readiness: Readiness;
  readonly server: ServerState;
}
