import type pg from 'pg';
import type { bytesInFolder } from '../../support/lake-traces.ts';
import {
  formOf,
  formsOf,
  isRejected,
  judgeAnswer,
  judgeRows,
  ownerOf,
  type Table,
  type Values,
  type Write,
} from './oracle.ts';
import { idsIn, type Person } from './people.ts';
import type { Round } from './round.ts';

/** An organisation whose people may be erased. */
export type Searched = Pick<Round, 'organisationId' | 'world' | 'violate'>;

/** The columns that are compared, and the one that identifies the record in the oracle. */
const compared: Record<Table, { readonly id: string; readonly columns: Readonly<Record<string, string>> }> = {
  customers: { id: 'customer_id', columns: asText('customer_id', 'user_id', 'region', 'gender') },
  transactions: {
    id: 'transaction_id',
    columns: {
      ...asText('shop_id', 'student_id', 'region'),
      amount: 'amount::double precision::text',
      ...asText('discount_name'),
    },
  },
  student_favourites: { id: 'student_favourite_id', columns: asText('student_id', 'shop_id') },
  interactions: {
    id: 'recommendation_id',
    columns: {
      interaction_type: 'interaction_type',
      // A user id in the form of a UUID may be stored in lower case.
      user_id: 'lower(user_id)',
      ...asText('student_id', 'item_id', 'city', 'country', 'platform'),
    },
  },
};

function asText(...names: string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, `${name}::text`]));
}

/** Compares the tables with the oracle after a round, in one snapshot. */
export async function checkTables(round: Round, admin: pg.Client): Promise<void> {
  await admin.query('begin isolation level repeatable read read only');
  try {
    for (const write of round.writes) {
      const wrong = judgeAnswer(write);
      if (wrong) round.violate(`answer: ${wrong}`, described(write));
    }
    const rejected = await rejectedIds(round, admin);
    for (const table of Object.keys(compared) as Table[]) await checkTable(round, admin, table, rejected);
    await searchIds(round, admin);
  } finally {
    await admin.query('rollback');
  }
}

async function checkTable(
  round: Round,
  admin: pg.Client,
  table: Table,
  rejected: ReadonlySet<string>,
): Promise<void> {
  const { id, columns } = compared[table];
  const list = Object.entries(columns).map(([name, expression]) => `'${name}', ${expression}`);
  const { rows } = await admin.query<{ id: string; row: Values }>(
    `select ${id}::text as id, jsonb_build_object(${list.join(', ')}) as row from ${table} where organisation_id = $1`,
    [round.organisationId],
  );
  const names = Object.keys(columns);
  const inOrder = (row: Values): Values => Object.fromEntries(names.map((name) => [name, row[name] ?? null]));
  const stored = Map.groupBy(rows, (row) => row.id);
  const writes = Map.groupBy(
    round.writes
      .filter((write) => write.table === table)
      .map((write) => ({ ...write, values: inOrder(write.values) })),
    (write) => write.id,
  );
  for (const [one, all] of writes) {
    const found = (stored.get(one) ?? []).map(({ row }) => inOrder(row));
    const wrong = judgeRows(all, found);
    if (wrong)
      round.violate(`${table}: ${wrong}`, {
        found: found.map(formOf),
        expected: all.map((write) => [...formsOf(write)]),
        writes: all.map(described),
      });
    const last = all.at(-1) as Write;
    const isKept = !ownerOf(last)?.isErased && !last.user?.isErased;
    if (table !== 'customers' && isRejected(last) && isKept && found.length === 0 && !rejected.has(one))
      round.violate(`${table}: a rejection was lost`, all.map(described));
  }
  for (const one of stored.keys())
    if (!writes.has(one)) round.violate(`${table}: nobody sent this`, { id: one });
}

async function rejectedIds({ organisationId }: Round, admin: pg.Client): Promise<Set<string>> {
  const { rows } = await admin.query<{ text: string }>(
    `select concat_ws(' ', record_id, record) as text from rejections where organisation_id = $1`,
    [organisationId],
  );
  return new Set(rows.flatMap(({ text }) => idsIn(text)));
}

/** Returns the ids of the people who were erased and not lifted. */
function erasedIds({ world }: Pick<Searched, 'world'>): Map<string, Person> {
  const erased = world.people.filter(({ staysErased }) => staysErased);
  return new Map(erased.flatMap((person) => person.ids.map((id) => [id, person] as const)));
}

/** Looks for the ids of erased people in every byte of the lake. */
export async function checkLake(round: Searched, files: ReturnType<typeof bytesInFolder>): Promise<void> {
  const erased = erasedIds(round);
  const kept = new Set(round.world.students.kept.flatMap(({ ids }) => ids));
  let isWritten = false;
  for await (const { path, parts } of files) {
    const ids = parts.flatMap((part) => idsIn(part.toString('latin1')));
    for (const id of new Set(ids)) {
      isWritten ||= kept.has(id);
      const person = erased.get(id);
      if (person) round.violate('id left in the lake', { id, fate: person.fate, path });
    }
  }
  if (!isWritten) throw new Error('the lake contains nobody, so nothing was checked');
}

/**
 * Looks for the ids of erased people in the planner's statistics, which are samples of rows. Statistics of one round may
 * contain ids of earlier rounds, whose people are gone too.
 */
export async function checkStatistics(
  round: Pick<Searched, 'world' | 'violate'>,
  admin: pg.Client,
): Promise<void> {
  const erased = erasedIds(round);
  const { rows } = await admin.query<{ name: string; text: string }>(
    `select tablename || '.' || attname as name, concat(most_common_vals::text, histogram_bounds::text) as text
     from pg_stats where schemaname = 'public' and tablename !~ '^changes'`,
  );
  for (const { name, text } of rows)
    for (const id of idsIn(text))
      if (erased.has(id)) round.violate(`id left in the statistics of ${name}`, { id });
}

/** Looks for the ids of erased people in every row of the organisation, and in tables that belong to nobody. */
export async function searchIds(round: Searched, admin: pg.Client): Promise<void> {
  const erased = erasedIds(round);
  const { rows: tables } = await admin.query<{ name: string; is_own: boolean }>(
    `select c.relname as name, exists (
       select from pg_attribute a where a.attrelid = c.oid and a.attname = 'organisation_id') as is_own
     from pg_class c
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`,
  );
  for (const { name, is_own } of tables) {
    const { rows } = await admin.query<{ text: string }>(
      `select t::text as text from ${name} t where ${is_own ? 'organisation_id = $1' : '$1::uuid is not null'}`,
      [round.organisationId],
    );
    const logged = new Set<string>();
    for (const { text } of rows)
      for (const id of idsIn(text)) {
        const person = erased.get(id);
        // One entry of the log has to stay until its day is dropped: the one that says that the customer was deleted.
        const isLast = name === 'changes' && person?.customers.includes(id) && !logged.has(id);
        if (person && !isLast) round.violate(`id left in ${name}`, { id, fate: person.fate, text });
        logged.add(id);
      }
  }
}

const secondsOf = (ms: number) => (Number.isFinite(ms) ? Math.round(ms) : null);

function described(write: Write) {
  const { outcome, code, version, isBroken, student, user } = write;
  const lifeOf = (person: typeof student) =>
    person && {
      fate: person.fate,
      modes: [...person.modes],
      erased: secondsOf(person.erasedFromMs),
      lifted: secondsOf(person.liftedMs),
    };
  const times = { sent: secondsOf(write.startedMs), answered: secondsOf(write.endedMs) };
  return {
    outcome,
    code,
    version,
    isBroken,
    ...times,
    student: lifeOf(student),
    user: lifeOf(user),
    ...write.values,
  };
}
