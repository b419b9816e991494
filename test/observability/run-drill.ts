import { setTimeout as sleep } from 'node:timers/promises';
import type { Drill } from './drills.ts';
import { type Outage, type Span, watchOutage } from './outage-log.ts';
import type { Pace } from './stand.ts';

/** The minimum duration of an outage, and how long to wait for its alerts to start and to end. */
const times = {
  shipped: { calmMs: 75_000, outageMs: 90_000, patienceMs: 420_000 },
  shortened: { calmMs: 3_000, outageMs: 12_000, patienceMs: 240_000 },
} as const satisfies Record<Pace, unknown>;

/**
 * Causes the outage, waits for its alerts, fixes it, and waits until the alerts have ended. Returns undefined if the
 * outage is not possible here.
 */
export async function runDrill(
  drill: Drill,
  pace: Pace,
  /** Called during the outage, with Prometheus's URL and the time at which its data starts. */
  look: (prometheus: string, fromSeconds: number) => Promise<void> = async () => {},
): Promise<Outage | undefined> {
  const { calmMs, outageMs, patienceMs } = times[pace];
  const prepared = await drill.prepare(pace);
  if (!prepared) return undefined;
  const log = watchOutage(prepared.stand, prepared.trusted);
  const startedSeconds = Date.now() / 1_000;
  const until = async (what: string, isTrue: () => boolean) => {
    for (const untilMs = performance.now() + patienceMs; !isTrue(); await sleep(100))
      if (performance.now() > untilMs)
        throw new Error(`${drill.title}: ${what} did not happen; fired: ${log.fired().join(', ')}`);
  };
  try {
    await sleep(calmMs);
    await until('no alert at first', () => log.isQuiet());
    log.begin();
    await prepared.cause();
    await Promise.all([
      until('the alerts', () =>
        drill.alerts.every((alert) => log.fired().some((fired) => fired.split(' ')[0] === alert)),
      ),
      sleep(outageMs),
    ]);
    await look(`http://${prepared.stand.prometheus.target}`, startedSeconds + calmMs / 2_000);
    log.recovered();
    await prepared.repair();
    // A pending alert may still fire after the fix, and the drill records that.
    await sleep(outageMs / 3);
    await until('the end of the alerts', () => log.isQuiet());
    await sleep(outageMs / 6);
    return await log.end();
  } finally {
    await log.end();
    await prepared.stop();
  }
}

/** Returns a row for the table in docs/operating/runbook.md. */
export function rowOf({ title }: Drill, { answers, resent, longestMs, unready, alerts }: Outage): string {
  const [sent, failed] = [[...answers], [...answers].filter(([status]) => !status.startsWith('2'))];
  const total = sent.reduce((sum, [, count]) => sum + count, 0);
  const clients = [
    failed.length === 0
      ? `all ${total} stored`
      : `of ${total}: ${sent.map(([status, count]) => `${count} × ${status}`).join(', ')}`,
    ...(resent > 0 ? [`${resent} sent again to the other process`] : []),
    `longest ${(longestMs / 1_000).toFixed(1)} s`,
  ].join('; ');
  const written = (spans: Outage['alerts']) =>
    [...spans].map(([name, { afterSeconds, endSeconds }]) => {
      const end = endSeconds < 0.5 ? 'until the repair' : `until ${endSeconds.toFixed(0)} s after the repair`;
      return `${name} after ${afterSeconds.toFixed(0)} s, ${end}`;
    });
  const [probes, fired] = [written(unready), written(namesOf(alerts))];
  return `| ${title} | ${clients} | ${probes.join('; ') || '200'} | ${fired.join('; ')} |`;
}

/**
 * Combines each alert's spans. An alert may fire for several chores or codes, so this takes the first start and
 * the last end.
 */
function namesOf(alerts: Outage['alerts']): Map<string, Span> {
  const named = new Map<string, Span>();
  for (const [name, span] of alerts) {
    const alert = name.split(' ')[0] ?? '';
    const known = named.get(alert);
    if (known) known.endSeconds = Math.max(known.endSeconds, span.endSeconds);
    else named.set(alert, { ...span });
  }
  return named;
}
