import type pg from 'pg';
import { itemTypes } from '../../src/registry/interaction.ts';
import { type ResourceType, referencesOf, resources } from '../../src/registry/resources.ts';
import {
  formsOf,
  isRejected,
  judgeRows,
  ownerOf,
  type Values,
  type Write,
} from '../../test/fault/erasure-mixture/oracle.ts';
import type { Organisation } from '../world/organisation.ts';
import { isOfErased } from './ledger.ts';
import { readTable } from './read-table.ts';
import { type ComparedTable, comparedTables } from './stored-text.ts';
import { uuidPattern } from './uuid-pattern.ts';

export type Violate = (kind: string, detail: unknown) => void;

/** Above this number of records, reading the whole table is faster than looking up each of them. */
const lookUpMax = 20_000;

/**
 * Compares the records that were sent since the last check with the database, while clients go on. Only what was answered
 * before the check must be there, and whatever is there must have been sent. People who are being erased are checked at
 * the end.
 */
export async function checkTouched(
  client: pg.Client,
  organisation: Organisation,
  violate: Violate,
): Promise<number> {
  const { ledger, id: organisationId } = organisation;
  const beganMs = performance.now();
  const known = ledger.takeTouched();
  await client.query('begin isolation level repeatable read read only');
  let checked = 0;
  for (const table of comparedTables) {
    const before = known.get(table.name) ?? new Map<string, readonly Write[]>();
    if (before.size === 0) continue;
    const some = before.size > lookUpMax ? undefined : [...before.keys()];
    const rows = Map.groupBy(await readTable(client, organisationId, table, some), ({ id }) => id);
    for (const [id, answered] of before) {
      // Clients may have sent more before the snapshot was taken.
      const later = (ledger.table(table.name).get(id) ?? []).filter(({ startedMs }) => startedMs >= beganMs);
      const writes = [...answered, ...later.map(undecided)];
      if (writes.some((write) => isOfErased(write))) continue;
      const found = (rows.get(id) ?? []).map(({ values }) => values);
      judge(organisation, table, writes, found, violate);
      checked++;
    }
  }
  return checked;
}

const undecided = (write: Write): Write => ({ ...write, outcome: 'unknown' });

function judge(
  { slug }: Organisation,
  { name }: ComparedTable,
  writes: readonly Write[],
  found: readonly Values[],
  violate: Violate,
): void {
  const wrong = judgeRows(writes, found);
  if (!wrong) return;
  const promise = wrong === 'stored twice' ? 'I4' : 'I1';
  violate(`${promise}: ${name}: ${wrong}`, {
    slug,
    id: writes[0]?.id,
    found,
    expected: writes.slice(-4).map((write) => [...formsOf(write)]),
    writes: writes.slice(-4).map(described),
  });
}

/** Compares every table with everything that was sent. No client may be working. */
export async function checkAll(
  client: pg.Client,
  organisation: Organisation,
  violate: Violate,
): Promise<number> {
  const { ledger, id: organisationId, slug } = organisation;
  const rejected = await rejectedIds(client, organisationId);
  let checked = 0;
  for (const table of comparedTables) {
    const rows = Map.groupBy(await readTable(client, organisationId, table), ({ id }) => id);
    for (const [id, writes] of ledger.table(table.name)) {
      const found = (rows.get(id) ?? []).map(({ values }) => values);
      judge(organisation, table, writes, found, violate);
      rows.delete(id);
      checked++;
      const last = writes.at(-1) as Write;
      const isKept = !ownerOf(last)?.isErased && !last.user?.isErased;
      if (isRejected(last) && isKept && found.length === 0 && !rejected.has(id) && !organisation.mayDiscard)
        violate(`I11: ${table.name}: a rejection was lost`, {
          slug,
          writes: writes.slice(-3).map(described),
        });
    }
    for (const [id, found] of rows)
      if (!organisation.merged.has(id))
        violate(`I2: ${table.name}: nobody sent this`, { slug, id, values: found[0]?.values });
  }
  return checked;
}

async function rejectedIds(client: pg.Client, organisationId: string): Promise<Set<string>> {
  const { rows } = await client.query<{ text: string }>(
    `select concat_ws(' ', record_id, record) as text from rejections where organisation_id = $1`,
    [organisationId],
  );
  return new Set(rows.flatMap(({ text }) => text.toLowerCase().match(uuidPattern) ?? []));
}

function described({ outcome, code, version, isBroken, startedMs, endedMs, values }: Write) {
  const [sent, answered] = [startedMs, endedMs].map((ms) => (Number.isFinite(ms) ? Math.round(ms) : null));
  return { outcome, code, version, isBroken, sent, answered, updated: values.updated };
}

const tableOf = (type: string) => type.replaceAll('-', '_');

/** Every reference that the service checks: the table and column that refer, and the table that they refer to. */
const references: readonly { from: string; column: string; to: string; where?: string }[] = [
  ...(Object.keys(resources) as ResourceType[]).flatMap((type) =>
    referencesOf(type).map(({ field, type: to }) => ({
      from: tableOf(type),
      column: field,
      to: tableOf(to),
    })),
  ),
  { from: 'interactions', column: 'student_id', to: 'customers' },
  ...Object.entries(itemTypes).map(([item, to]) => ({
    ...{ from: 'interactions', column: 'item_id', to: tableOf(to) },
    where: `r.item_type = '${item}'`,
  })),
];

/** Looks for records that refer to a record that does not exist. An erasure deletes a person's customer last. */
export async function checkReferences(
  client: pg.Client,
  { id: organisationId, slug }: Organisation,
  violate: Violate,
): Promise<void> {
  for (const { from, column, to, where = 'true' } of references) {
    const key = Object.keys(resources[to.replaceAll('_', '-') as ResourceType].fields)[0];
    const { rows } = await client.query(
      `select r.${column}::text as missing from ${from} r
       where r.organisation_id = $1 and r.${column} is not null and ${where}
         and not exists (select from ${to} t where t.organisation_id = $1 and t.${key} = r.${column})
       limit 3`,
      [organisationId],
    );
    if (rows.length > 0) violate(`I3: ${from}.${column} refers to nothing`, { slug, rows });
  }
}
