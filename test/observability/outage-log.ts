import { randomUUID } from 'node:crypto';
import { request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { newTag } from '../support/new-records.ts';
import { startOpenLoad } from './open-load.ts';
import type { Stand } from './stand.ts';

/** An outage as seen by clients, a load balancer's probes and Prometheus. */
export interface OutageLog {
  /** Starts recording. All times are measured from here. */
  begin(): void;
  /** Marks the time of the fix. */
  recovered(): void;
  /** Returns the alerts that have fired since the start. */
  fired(): string[];
  /** Returns whether no alert is firing or pending. */
  isQuiet(): boolean;
  end(): Promise<Outage>;
}

export interface Outage {
  /** The number of responses by status, or by the reason if there was no answer. */
  readonly answers: ReadonlyMap<string, number>;
  /** The number of requests that were retried on the other process because the first process did not answer. */
  readonly resent: number;
  readonly longestMs: number;
  /** The readiness answers other than 200, by code or reason. */
  readonly unready: ReadonlyMap<string, Span>;
  readonly alerts: ReadonlyMap<string, Span>;
}

/** The seconds from the start of the outage to the first occurrence, and from the recovery to the last occurrence. */
export interface Span {
  readonly afterSeconds: number;
  endSeconds: number;
}

const perSecond = 10;
const probeMs = 1_000;

/**
 * Sends 10 uploads per second, alternating between the processes. If one process does not answer, the upload is retried
 * on the other.
 */
export function watchOutage({ servers, key, prometheus }: Stand, trusted: readonly Buffer[] = []): OutageLog {
  const counts = new Map<string, number>();
  const [unready, alerts] = [new Map<string, Span>(), new Map<string, Span>()];
  let [resent, longestMs, turn] = [0, 0, 0];
  let beganMs: number | undefined;
  let recoveredMs: number | undefined;
  let firing: string[] = [];
  const note = (spans: Map<string, Span>, name: string) => {
    if (beganMs === undefined) return;
    const span = spans.get(name) ?? { afterSeconds: (performance.now() - beganMs) / 1_000, endSeconds: 0 };
    span.endSeconds = (performance.now() - (recoveredMs ?? performance.now())) / 1_000;
    spans.set(name, span);
  };
  const load = startOpenLoad(perSecond, async () => {
    const started = performance.now();
    const first = turn++ % servers.length;
    const path = '/v1/data/tags';
    const sent = { path, ca: trusted, key, idempotencyKey: randomUUID(), body: { records: [newTag()] } };
    let answer = await ask(servers[first]?.url, sent);
    const isLost = answer.status === undefined;
    if (isLost && servers.length > 1) answer = await ask(servers[(first + 1) % servers.length]?.url, sent);
    if (beganMs === undefined || started < beganMs) return;
    if (isLost) resent++;
    longestMs = Math.max(longestMs, performance.now() - started);
    const name = answer.status === undefined ? `no answer (${answer.reason})` : String(answer.status);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  });
  const stopProbing = repeat(probeMs, () =>
    Promise.all(
      servers.map(async ({ url }) => {
        const { status, reason } = await ask(url, { path: '/health/ready', ca: trusted });
        if (status !== 200)
          note(unready, status === undefined ? `no answer (${reason})` : `${status} ${reason}`);
      }),
    ),
  );
  const stopAsking = repeat(probeMs / 4, async () => {
    firing = await prometheus.firing();
    for (const name of firing) note(alerts, name);
  });
  return {
    begin() {
      beganMs = performance.now();
    },
    recovered() {
      recoveredMs = performance.now();
    },
    fired: () => [...alerts.keys()],
    isQuiet: () => firing.length === 0,
    async end() {
      await Promise.all([load.stop(), stopProbing(), stopAsking()]);
      return { answers: counts, resent, longestMs, unready, alerts };
    },
  };
}

/** Repeats the work, one call after another. */
function repeat(everyMs: number, work: () => Promise<unknown>): () => Promise<void> {
  let stopped = false;
  const done = (async () => {
    while (!stopped) {
      const next = sleep(everyMs);
      await work().catch(() => {});
      await next;
    }
  })();
  return async () => {
    stopped = true;
    await done;
  };
}

interface Sent {
  readonly path: string;
  readonly ca: readonly Buffer[];
  readonly key?: string;
  readonly idempotencyKey?: string;
  readonly body?: object;
}

/**
 * Sends a request on its own connection. If it gets a response, `reason` is the error code. Otherwise the status is
 * undefined and `reason` explains why.
 */
function ask(
  url: string | undefined,
  { path, ca, key, idempotencyKey, body }: Sent,
): Promise<{ readonly status?: number; readonly reason: string }> {
  const request = url?.startsWith('https:') ? tlsRequest : plainRequest;
  const headers = {
    ...(key && { authorization: `Bearer ${key}` }),
    ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
    ...(body && { 'content-type': 'application/json' }),
  };
  return new Promise((resolve) => {
    const options = { method: body ? 'POST' : 'GET', headers, ca: [...ca], agent: false };
    const asked = request(`${url}${path}`, options, async (response) => {
      let text = '';
      try {
        for await (const part of response) text += part;
        resolve({ status: response.statusCode ?? 0, reason: /"code":\s*"(\w+)"/.exec(text)?.[1] ?? '' });
      } catch {
        resolve({ reason: 'cut off' });
      }
    });
    asked.once('error', ({ code = 'unknown' }: NodeJS.ErrnoException) => resolve({ reason: code }));
    asked.end(body && JSON.stringify(body));
  });
}
