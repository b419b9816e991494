import { setTimeout as sleep } from 'node:timers/promises';
import type { Drill } from './drills.ts';
import { type Outage, type Span, watchOutage } from './outage-log.ts';
import type { Pace } from './stand.ts';

/** How long an outage lasts at least, and how long is waited for its alerts, to begin and to end. */
const times = {
  shipped: { calmMs: 75_000, outageMs: 90_000, patienceMs: 420_000 },
  shortened: { calmMs: 3_000, outageMs: 12_000, patienceMs: 60_000 },
} as const satisfies Record<Pace, unknown>;

/** Causes the outage, waits for its alerts, repairs it, and waits until they have ended. Undefined if it cannot be done here. */
export async function runDrill(
  drill: Drill,
  pace: Pace,
  /** Called during the outage, with the Prometheus and the moment from which it has numbers. */
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
    // An alert that is pending may fire after the repair, which is worth knowing.
    await sleep(outageMs / 3);
    await until('the end of the alerts', () => log.isQuiet());
    await sleep(outageMs / 6);
    return await log.end();
  } finally {
    await log.end();
    await prepared.stop();
  }
}

/** A row of the table in docs/runbook.md. */
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
      const end = endSeconds < 0.5 ? 'until the repair' : `until ${endSeconds.toFixed(0)} s after`;
      return `${name} after ${afterSeconds.toFixed(0)} s, ${end}`;
    });
  const [probes, fired] = [written(unready), written(namesOf(alerts))];
  return `| ${title} | ${clients} | ${probes.join('; ') || '200'} | ${fired.join('; ')} |`;
}

/** An alert may fire for several chores or codes: the first that began and the last that ended. */
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
