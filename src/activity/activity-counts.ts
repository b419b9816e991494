// activity/: the activity of processes and organisations, which each process reports once a minute for the operator.

import { limits } from '../limits.ts';

export const measures = ['requests', 'records', 'interactions', 'bytes', 'rejections', 'limits_hit'] as const;

export type Measure = (typeof measures)[number];

export type Activity = Record<Measure, number>;

/** The fields of a request's log line that are counted. */
interface AnsweredRequest {
  readonly operation_id: string | undefined;
  readonly organisation_id: string | undefined;
  readonly status: number;
  readonly body_bytes: number | undefined;
  readonly dry_run: true | undefined;
  readonly counts: { readonly received: number; readonly failed: number } | undefined;
}

export class ActivityCounts {
  #counts = new Map<string, Activity>();

  answered({ organisation_id, operation_id, status, body_bytes, dry_run, counts }: AnsweredRequest): void {
    if (organisation_id === undefined) return;
    const sums = this.#sumsOf(organisation_id);
    if (!sums) return;
    sums.requests++;
    sums.bytes += body_bytes ?? 0;
    if (status === 429) sums.limits_hit++;
    else if (operation_id === 'record-interaction') {
      if (status < 300) sums.interactions++;
      else if (status === 400) sums.rejections++;
    } else if (counts && !dry_run) {
      sums[operation_id === 'upload-interactions' ? 'interactions' : 'records'] += counts.received;
      sums.rejections += counts.failed;
    }
  }

  /** Returns only the busiest organisations by each measure, and resets all counts. */
  take(): Map<string, Activity> {
    const counts = this.#counts;
    this.#counts = new Map();
    const busiest = new Set(measures.flatMap((measure) => busiestBy(measure, counts)));
    return new Map([...busiest].map((id) => [id, counts.get(id) as Activity]));
  }

  #sumsOf(organisationId: string): Activity | undefined {
    const known = this.#counts.get(organisationId);
    if (known || this.#counts.size >= limits.activeOrganisationsMax) return known;
    const sums = { requests: 0, records: 0, interactions: 0, bytes: 0, rejections: 0, limits_hit: 0 };
    this.#counts.set(organisationId, sums);
    return sums;
  }
}

/** Finds the busiest organisations in a single pass, because sorting 100,000 entries would block requests. */
function busiestBy(measure: Measure, counts: ReadonlyMap<string, Activity>): string[] {
  const top: { readonly id: string; readonly count: number }[] = [];
  for (const [id, { [measure]: count }] of counts) {
    const isFull = top.length === limits.busiestOrganisationsMax;
    if (count === 0 || (isFull && count <= (top.at(-1)?.count ?? 0))) continue;
    const at = top.findIndex((other) => other.count < count);
    top.splice(at === -1 ? top.length : at, 0, { id, count });
    if (isFull) top.pop();
  }
  return top.map(({ id }) => id);
}
