import { setTimeout as sleep } from 'node:timers/promises';
import type { SharedCounts } from '../../admission/shared-counts.ts';
import type { Certificate } from '../../http/server/certificate.ts';
import { limits } from '../../limits.ts';
import type { Maintenance } from '../../maintenance/maintenance.ts';
import type { Sources } from '../../metrics/metrics.ts';
import type { createParts } from './composition.ts';

/** Returns the values that the metrics read at each scrape. */
export function sourcesOf(
  parts: ReturnType<typeof createParts>,
  maintenance: Maintenance,
  certificate: Certificate | undefined,
  shared: SharedCounts | undefined,
): Sources {
  let wasReady = false;
  return {
    // PostgreSQL may take longer to answer than a scrape should take. In that case, the previous result is reported.
    async isReady() {
      const asked = parts.readiness.isReady().then((isReady) => {
        wasReady = isReady;
      });
      await Promise.race([asked, sleep(limits.metricsReadyMs, undefined, { ref: false })]);
      return wasReady;
    },
    clockAheadMs: () => parts.server.aheadMs,
    isRedisUp: () => shared && shared.client.status === 'ready',
    pools: parts.pools,
    waitingForConnection: () => parts.pool.waitingCount,
    interactionsWaiting: () => parts.writer.waiting,
    changeStreams: () => parts.changeWatch.streams,
    stalledMs: () => parts.readiness.stalledMs,
    bytesInFlight: () => parts.bytesInFlight.bytes,
    bytesInFlightMax: parts.config.bytesInFlightMax,
    keys: () => parts.keys.state,
    isLeader: () => maintenance.isLeader,
    certificateExpires: () => certificate?.expires,
  };
}
