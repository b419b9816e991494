import type pg from 'pg';

/** How Citus runs a statement. */
export interface CitusPlan {
  /** The number of tasks, or 0 if the statement uses no distributed table. */
  readonly tasks: number;
  /** The node that runs each task, as `host:port`. */
  readonly nodes: readonly string[];
  /** Whether intermediate rows pass through the queried node. */
  readonly isPulled: boolean;
  readonly text: string;
}

/** Explains a statement with its actual parameters, because they determine which node Citus chooses. */
export async function citusPlan(
  client: pg.ClientBase,
  text: string,
  values: readonly unknown[],
): Promise<CitusPlan> {
  const { rows } = await client.query<{ 'QUERY PLAN': unknown }>(`explain (costs off, format json) ${text}`, [
    ...values,
  ]);
  const plan = rows[0]?.['QUERY PLAN'];
  const found = [...entriesOf(plan)];
  const valuesOf = (name: string) => found.flatMap(([key, value]) => (key === name ? [value] : []));
  return {
    tasks: valuesOf('Task Count').reduce<number>((sum, tasks) => sum + Number(tasks), 0),
    nodes: valuesOf('Node').map((node) => String(node).replace(/^host=(\S+) port=(\d+) .*$/, '$1:$2')),
    isPulled:
      valuesOf('Subplans').length > 0 ||
      valuesOf('Custom Plan Provider').some((provider) => provider !== 'Citus Adaptive'),
    text: JSON.stringify(plan, null, 1),
  };
}

function* entriesOf(value: unknown): Generator<[string, unknown]> {
  if (typeof value !== 'object' || value === null) return;
  for (const entry of Object.entries(value)) {
    yield entry;
    yield* entriesOf(entry[1]);
  }
}
