import type pg from 'pg';

/** The result of `explain` for a statement. */
export interface Plan {
  readonly cost: number;
  /** The tables that the plan scans fully. A partition is listed under its parent. */
  readonly readWhole: readonly string[];
  /** The tables that the plan reads or writes. */
  readonly tables: readonly string[];
  readonly text: string;
}

interface Node {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Total Cost': number;
  readonly Plans?: readonly Node[];
}

/** Returns the generic plan, which does not depend on parameter values. */
export async function genericPlan(client: pg.Client, statement: string): Promise<Plan> {
  const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Node }] }>(
    `explain (generic_plan, format json) ${statement}`,
  );
  const root = rows[0]!['QUERY PLAN'][0].Plan;
  const nodes = [...nodesOf(root)];
  const parents = await parentsOf(client);
  const named = (found: readonly Node[]) => [
    ...new Set(found.flatMap((node) => parents.get(node['Relation Name'] ?? '') ?? [])),
  ];
  return {
    cost: root['Total Cost'],
    readWhole: named(nodes.filter((node) => node['Node Type'] === 'Seq Scan')),
    tables: named(nodes),
    text: JSON.stringify(
      root,
      ['Node Type', 'Relation Name', 'Index Name', 'Index Cond', 'Filter', 'Total Cost', 'Plans'],
      1,
    ),
  };
}

function* nodesOf(node: Node): Generator<Node> {
  yield node;
  for (const child of node.Plans ?? []) yield* nodesOf(child);
}

/** Maps every partition to its parent and every other table to itself. Skips empty tables, because scanning them is free. */
async function parentsOf(client: pg.Client): Promise<Map<string, string>> {
  const { rows } = await client.query<{ name: string; parent: string }>(
    `select c.relname as name, coalesce(p.relname, c.relname) as parent
     from pg_class c left join pg_inherits i on i.inhrelid = c.oid left join pg_class p on p.oid = i.inhparent
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
       and (c.relkind = 'p' or pg_relation_size(c.oid) > 0)`,
  );
  return new Map(rows.map(({ name, parent }) => [name, parent]));
}

/** Returns the statements inside the SQL functions that a statement calls, with the function arguments as parameters. */
export async function statementsInside(client: pg.Client, statement: string): Promise<string[]> {
  const { rows } = await client.query<{ body: string; names: string[]; types: string[] }>(
    `select prosrc as body, coalesce(proargnames[:pronargs], '{}') as names,
       array(select format_type(unnest(proargtypes), null)) as types
     from pg_proc join pg_language l on l.oid = prolang
     where pronamespace = 'public'::regnamespace and lanname = 'sql' and $1 ~ ('\\m' || proname || '\\(')`,
    [statement],
  );
  return rows.map(({ body, names, types }) =>
    names.reduce(
      (text, name, at) => text.replaceAll(new RegExp(`\\b${name}\\b`, 'g'), `$${at + 1}::${types[at]}`),
      body,
    ),
  );
}
