import type { Instant } from '../../src/registry/times.ts';

/** Formats an instant like `2026-03-14T09:26:53.589793Z`, with a different calculation from the service's. */
export function isoOf(instant: Instant): string {
  const micros = BigInt(instant);
  const part = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const seconds = new Date(Date.UTC(2000, 0, 1) + Number((micros - part) / 1_000n))
    .toISOString()
    .slice(0, 20);
  return `${seconds}${String(part).padStart(6, '0')}Z`;
}
