import type { Bench } from './case.ts';
import { type Answer, requestOf, sendInTurn, withConnections } from './http-load.ts';
import { bodiesOf, type Recipe } from './records.ts';

export type Outcome = 'created' | 'updated' | 'unchanged';

/** Returns the records as complete requests, which are built before the clock starts. */
export function uploadRequests(bench: Bench, recipe: Recipe, mode = 'replace'): Buffer[] {
  const path = `/v1/data/${recipe.type}?mode=${mode}`;
  return bodiesOf(recipe).map((body) => requestOf(path, bench.tenant.key, body));
}

/** Returns the same requests, each with a new Idempotency-Key. */
export function keyedRequests(bench: Bench, recipe: Recipe): Buffer[] {
  return bodiesOf(recipe).map((body) =>
    requestOf(
      `/v1/data/${recipe.type}`,
      bench.tenant.key,
      body,
      `Idempotency-Key: ${crypto.randomUUID()}\r\n`,
    ),
  );
}

/** Uploads everything and returns the records per second. Fails unless every record has the expected outcome. */
export async function uploadRate(
  { port, connections }: { port: number; connections: number },
  requests: readonly Uint8Array[],
  expected: Partial<Record<Outcome, number>>,
): Promise<number> {
  const answers: Answer[] = [];
  let at = 0;
  const next = () => requests[at++];
  const { seconds } = await withConnections(port, connections, (open) =>
    sendInTurn(open, next, (answer) => answers.push(answer)),
  );
  const counts = countOutcomes(answers);
  const all = { created: 0, updated: 0, unchanged: 0, ...expected };
  for (const [outcome, count] of Object.entries(all)) {
    if (counts[outcome] !== count) {
      throw new Error(`${count} records should be ${outcome}, but the answers say ${JSON.stringify(counts)}`);
    }
  }
  return Object.values(all).reduce((sum, count) => sum + count) / seconds;
}

/** Adds up the counts of all batches. */
export function countOutcomes(answers: readonly Answer[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const { status, body } of answers) {
    if (status !== 200) throw new Error(`an upload was answered ${status}: ${body.toString().slice(0, 500)}`);
    for (const { data } of (JSON.parse(body.toString()) as UploadAnswer).batches) {
      for (const [outcome, count] of Object.entries(data.counts))
        sums[outcome] = (sums[outcome] ?? 0) + count;
    }
  }
  return sums;
}

interface UploadAnswer {
  readonly batches: readonly { readonly data: { readonly counts: Record<string, number> } }[];
}
