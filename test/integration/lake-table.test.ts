import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { compact } from '../../src/lake/table/compact.ts';
import { DeltaTable } from '../../src/lake/table/delta-table.ts';
import { lakeSchema } from '../../src/lake/table/lake-schema.ts';
import {
  append,
  asRead,
  changed,
  day,
  dayMs,
  eraseFrom,
  filesAt,
  linesOf,
  logOf,
  newRows,
  rowsIn,
  temporaryFolder,
  testLake,
  testWriter,
} from '../support/lake.ts';

const interactions = lakeSchema('interactions');
const folder = 'acme/interactions';

describe('a table', () => {
  it('has every row of every version as it was written', async () => {
    const { root, parquet, open } = testLake();
    const table = await open();
    const first = newRows(50);
    const second = newRows(50, dayMs + 1_000);
    const third = newRows(50, dayMs + 86_400_000);
    for (const rows of [first, second, third]) expect(await append(table, parquet, rows)).toBe('committed');
    expect(table.version).toBe(3);
    expect(await rowsIn(root, filesAt(root, 0))).toEqual([]);
    expect(await rowsIn(root, filesAt(root, 1))).toEqual(asRead(first));
    expect(await rowsIn(root, filesAt(root, 2))).toEqual(asRead([...first, ...second]));
    expect(await rowsIn(root, filesAt(root, 3))).toEqual(asRead([...first, ...second, ...third]));
    expect(table.files.map(({ partition, rows }) => [partition, rows])).toEqual([
      [day, 50],
      [day, 50],
      ['2026-03-15', 50],
    ]);
  });

  it('says in its log counts and times, and no value of a row', async () => {
    const { root, parquet, open } = testLake();
    const rows = newRows(5, dayMs + 7).slice(2);
    await append(await open(), parquet, rows);
    const log = JSON.stringify(logOf(root));
    for (const row of rows)
      for (const field of ['interaction_id', 'student_id', 'user_id', 'item_id'])
        if (row[field]) expect(log).not.toContain(row[field]);
    const [, [, { add } = {}] = []] = logOf(root);
    expect(JSON.parse(String(add?.stats))).toEqual({
      numRecords: 3,
      minValues: { event_time: '2026-03-13T23:59:59.000Z', created: `${day}T00:00:00.009Z` },
      maxValues: { event_time: '2026-03-13T23:59:59.001Z', created: `${day}T00:00:00.011Z` },
    });
  });

  it('leaves out the range of times that reaches the year 10000', async () => {
    const { parquet } = testLake();
    const written = await parquet.write(linesOf(parquet, newRows(3)), interactions, { day });
    expect(Object.keys(written?.stats.maxValues ?? {})).toEqual(['created']);
  });

  it('describes its columns and asks for no more than reader version 1 and writer version 2', async () => {
    const { root, open } = testLake();
    await open();
    const [[, { protocol } = {}, { metaData } = {}] = []] = logOf(root);
    expect(protocol).toEqual({ minReaderVersion: 1, minWriterVersion: 2 });
    expect(metaData).toMatchObject({ name: 'interactions', partitionColumns: ['received_on'] });
    const { fields } = JSON.parse(String(metaData?.schemaString));
    expect(fields).toContainEqual({
      name: 'event_time',
      type: 'timestamp',
      nullable: true,
      metadata: { comment: 'when it happened, as the sender says' },
    });
  });

  it('gets a column that was added to the type, which older rows do not have', async () => {
    const { root, parquet, open } = testLake();
    const rows = newRows(4);
    const later = newRows(4, dayMs + 10);
    await append(await open(), parquet, rows);
    const grown = {
      ...interactions,
      columns: [...interactions.columns, { name: 'mood', type: 'string', description: '' } as const],
    };
    const table = await open(grown);
    await append(
      table,
      parquet,
      later.map((row) => ({ ...row, mood: 'fine' })),
    );
    expect(await compact(table, parquet, day)).toBe('committed');
    expect(table.files.length).toBe(1);
    expect(await rowsIn(root, filesAt(root, table.version))).toEqual(
      asRead([
        ...rows.map((row) => ({ ...row, mood: null })),
        ...later.map((row) => ({ ...row, mood: 'fine' })),
      ]),
    );
    const retyped = interactions.columns.map((column) => ({ ...column, type: 'boolean' as const }));
    await expect(open({ ...interactions, columns: retyped })).rejects.toThrow('another type');
    await expect(open()).rejects.toThrow('column mood, which this release does not know; run a release');
  });

  const foreign = { path: 'part-00000.parquet', partitionValues: {}, size: 1, modificationTime: 0 };
  it.each([
    ['changed the protocol of', { protocol: { minReaderVersion: 3, minWriterVersion: 7 } }],
    // Stats and tags are optional.
    ['added files to', { add: { ...foreign, dataChange: true } }],
    ['added files to', { add: { ...foreign, dataChange: true, stats: '{"numRecords":1}', tags: null } }],
    [
      'added files to',
      { add: { ...foreign, dataChange: true, stats: '{"numRecords":1}', tags: { a: 'b' } } },
    ],
  ])('if another program has %s a table, refuses it and says what to do', async (what, action) => {
    const { store, open } = testLake();
    await open();
    const entry = Buffer.from(`${JSON.stringify(action)}\n`);
    await store.create(`${folder}/_delta_log/00000000000000000001.json`, entry);
    await expect(open()).rejects.toThrow(
      new RegExp(`another program has ${what} the table ${folder} of the lake.* lake off`),
    );
  });
});

describe('two writers', () => {
  it('never commit the same version: one gets a conflict, and then sees what the other did', async () => {
    const { root, parquet, open } = testLake();
    const one = await open();
    const other = await open();
    const [first, second] = [newRows(3), newRows(3, dayMs + 10)];
    const outcomes = await Promise.all([append(one, parquet, first, 7), append(other, parquet, second, 7)]);
    expect(outcomes.toSorted()).toEqual(['committed', 'conflict']);
    for (const table of [one, other]) expect([table.version, table.positions.get('acme')]).toEqual([1, 7]);
    const kept = outcomes[0] === 'committed' ? first : second;
    expect(await rowsIn(root, filesAt(root, 1))).toEqual(asRead(kept));
  });

  it('a file that one has stored is not kept if the other has committed', async () => {
    const { root, parquet, open } = testLake();
    const [one, other] = [await open(), await open()];
    const written = await parquet.write(linesOf(parquet, newRows(3)), interactions, { day });
    const late = await one.put(written!, day);
    expect(await other.fence()).toBe('committed');
    expect(await one.commit({ add: [late] })).toBe('conflict');
    expect(existsSync(join(root, folder, late.path))).toBe(false);
    await expect(one.commit({ add: [late] })).rejects.toThrow('another version');
    expect(filesAt(root, 1)).toEqual([]);
  });

  it('both make the same table when it does not exist', async () => {
    const { root, open } = testLake();
    await Promise.all([open(), open(), open()]);
    expect(logOf(root).length).toBe(1);
  });

  it('do not lose rows when one merges files that the other has removed', async () => {
    const { root, parquet, open } = testLake();
    const one = await open();
    const rows = [newRows(3), newRows(3, dayMs + 10)];
    for (const some of rows) await append(one, parquet, some);
    const other = await open();
    expect(await compact(one, parquet, day)).toBe('committed');
    expect(await compact(other, parquet, day)).toBe('conflict');
    expect(await compact(other, parquet, day)).toBe('nothing');
    expect(await rowsIn(root, filesAt(root, other.version))).toEqual(asRead(rows.flat()));
  });
});

describe('after a failure', () => {
  it('a commit whose answer was lost is found by its position', async () => {
    const { root, store, parquet, open } = testLake();
    await open();
    let isLost = true;
    const losing = changed(store, {
      async create(path, bytes) {
        const created = await store.create(path, bytes);
        if (isLost) throw new Error('no answer');
        return created;
      },
    });
    const table = await DeltaTable.open(losing, folder, interactions, parquet);
    const rows = newRows(3);
    await expect(append(table, parquet, rows, 12)).rejects.toThrow('no answer');
    isLost = false;
    // The writer cannot know whether it committed, so it retries, gets a conflict and learns the table's position.
    expect(await append(table, parquet, rows, 12)).toBe('conflict');
    expect(table.positions.get('acme')).toBe(12);
    expect(await rowsIn(root, filesAt(root, table.version))).toEqual(asRead(rows));
  });

  it('a writer that is killed between storing a file and its commit has added nothing', async () => {
    const { root, store, parquet, open } = testLake();
    const table = await open();
    const program = fileURLToPath(new URL('../support/killed-writer.ts', import.meta.url));
    const writer = fork(program, [root, temporaryFolder()], { execArgv: [] });
    const [stored] = await once(writer, 'message');
    writer.kill('SIGKILL');
    await once(writer, 'exit');
    const orphan = join(root, folder, stored.path);
    expect(existsSync(orphan)).toBe(true);

    const again = await open();
    expect([again.version, again.files, again.positions.get('acme')]).toEqual([0, [], undefined]);
    await again.vacuum(new Date());
    await again.purge();
    expect(existsSync(orphan)).toBe(true);
    const rows = newRows(2);
    expect(await append(table, parquet, rows, 1)).toBe('committed');
    // Before this version existed, the orphaned file's own commit could still have been pending.
    await table.vacuum(new Date());
    expect(existsSync(orphan)).toBe(false);
    expect(await rowsIn(root, filesAt(root, 1))).toEqual(asRead(rows));
    expect(await store.read(`${folder}/${table.files[0]?.path}`)).toBeDefined();
  });

  it('the process that writes Parquet is started again', async () => {
    const parquet = testWriter();
    const lines = linesOf(parquet, newRows(2));
    await parquet.write(lines, interactions, { day });
    const children = execFileSync('pgrep', ['-P', String(process.pid), '-f', parquet.folder], {
      encoding: 'utf8',
    });
    const slow = parquet.run(['select sum(a.i * b.i) from range(1000000) a(i), range(1000000) b(i)']);
    const failed = expect(slow).rejects.toThrow('ended: SIGKILL');
    process.kill(Number(children), 'SIGKILL');
    await failed;
    expect(await parquet.write(lines, interactions, { day })).toMatchObject({ rows: 2 });
  });

  it('a process that writes Parquet and no longer answers is killed', async () => {
    const parquet = testWriter(256, { answerMs: 100 });
    const late = parquet.run(['select sum(a.i * b.i) from range(1000000) a(i), range(1000000) b(i)']);
    await expect(late).rejects.toThrow('did not answer within 100 ms');
    expect(() => execFileSync('pgrep', ['-P', String(process.pid), '-f', parquet.folder])).toThrow();
  });

  it('the folder for local files is never created again, because another user could do so first', () => {
    const own = temporaryFolder();
    writeFileSync(join(own, 'kept'), '');
    testWriter(256, { folder: own });
    expect(readdirSync(own)).toEqual(['kept']);
  });

  it('DuckDB reports what kind of error it was, and no value of a row', async () => {
    const parquet = testWriter();
    const rows = newRows(1).map((row) => ({ ...row, event_time: 'visitor-7d1f' }));
    const failed = parquet.write(linesOf(parquet, rows), interactions, { day });
    await expect(failed).rejects.toThrow(/^DuckDB: [A-Za-z ]+ Error$/);
    expect(readdirSync(parquet.folder).filter((name) => name.endsWith('.parquet'))).toEqual([]);
  });

  it('DuckDB reaches no file outside its folder', async () => {
    const { parquet } = testLake();
    const outside = fileURLToPath(new URL('../../package.json', import.meta.url));
    for (const statement of [
      `select * from read_text('${outside}')`,
      `copy (select 1) to '${outside}.parquet'`,
      `set enable_external_access = true`,
    ])
      await expect(parquet.run([statement])).rejects.toThrow(/Permission|Invalid|Error/);
    expect(existsSync(`${outside}.parquet`)).toBe(false);
  });

  it('rows of another day are refused', async () => {
    const parquet = testWriter();
    const lines = linesOf(parquet, newRows(2, dayMs - 1));
    await expect(parquet.write(lines, interactions, { day })).rejects.toThrow('another day');
  });
});

describe('a row', () => {
  it('is left out if a file has its id', async () => {
    const { parquet, root, open } = testLake();
    const table = await open();
    const rows = newRows(10);
    await append(table, parquet, rows.slice(0, 6));
    const [file] = table.files;
    const except = [await table.get(file!)];
    const written = await parquet.write(linesOf(parquet, rows.slice(4)), interactions, { day, except });
    expect(written?.rows).toBe(4);
    await table.commit({ add: [await table.put(written!, day)] });
    expect(await rowsIn(root, filesAt(root, table.version))).toEqual(asRead(rows));
    expect(
      await parquet.write(linesOf(parquet, rows.slice(0, 6)), interactions, { day, except }),
    ).toBeUndefined();
  });

  it('loses what is personal, or goes, and older versions of it are deleted at once', async () => {
    const { parquet, root, open } = testLake();
    const table = await open();
    const rows = newRows(10);
    for (const some of [rows.slice(0, 6), rows.slice(6)]) await append(table, parquet, some);
    const [first, second] = table.files;
    const [erased, staying] = [rows[3]!, rows[5]!];
    const people = [erased.student_id, staying.student_id];
    const asked = { people, staying: [staying.interaction_id, rows[0]!.interaction_id] };
    expect(await eraseFrom(table, parquet, second!, asked)).toBe('nothing');
    expect(await eraseFrom(table, parquet, first!, asked)).toBe('committed');
    const emptied = { ...staying, user_id: null, student_id: null, city: null, country: null };
    const left = rows.filter((row) => row !== erased).map((row) => (row === staying ? emptied : row));
    expect(await rowsIn(root, filesAt(root, table.version))).toEqual(asRead(left));
    expect(logOf(root).at(-1)).toContainEqual({
      remove: { path: first?.path, deletionTimestamp: expect.any(Number), dataChange: true },
    });
    await table.purge();
    expect(existsSync(join(root, folder, first!.path))).toBe(false);
    expect(existsSync(join(root, folder, second!.path))).toBe(true);
    // Add a file that has no rows left after the erasure.
    const lonely = newRows(4, dayMs + 20).filter(({ student_id }) => student_id !== null);
    await append(table, parquet, lonely);
    const all = { people: lonely.map(({ student_id }) => student_id) };
    expect(await eraseFrom(table, parquet, table.files.at(-1)!, all)).toBe('committed');
    expect(await rowsIn(root, filesAt(root, table.version))).toEqual(asRead(left));
  });
});

describe('merging', () => {
  it('makes one file of many, with the same rows in it, and says that nothing changed', async () => {
    const { parquet, root, open } = testLake();
    const table = await open();
    const rows = [newRows(20), newRows(20, dayMs + 100), newRows(20, dayMs + 200)];
    for (const some of rows) await append(table, parquet, some, some.length);
    expect(await compact(table, parquet, day)).toBe('committed');
    expect(table.files.map((file) => file.rows)).toEqual([60]);
    expect(table.positions.get('acme')).toBe(20);
    expect(await rowsIn(root, filesAt(root, 3))).toEqual(asRead(rows.flat()));
    expect(await rowsIn(root, filesAt(root, 4))).toEqual(asRead(rows.flat()));
    const merged = logOf(root)
      .at(-1)
      ?.flatMap(({ add, remove }) => add ?? remove ?? []);
    expect(merged?.map(({ dataChange }) => dataChange)).toEqual([false, false, false, false]);
    expect(await compact(table, parquet, day)).toBe('nothing');
    expect(readdirSync(parquet.folder).filter((name) => name.endsWith('.parquet'))).toEqual([]);
  });
});
