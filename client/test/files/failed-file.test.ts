import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FailedFile } from '../../src/files/failed-file.ts';
import { openFile } from '../../src/files/reading/read-file.ts';
import { ids, makeFile, readAll } from './support.ts';

const text = `Shop ID;name;region;is_public\n${ids.shop};"Fish; ""chips""";GB;maybe\n${ids.shop};Corner Bakery;G1;yes\nx;y\n`;
const options = { map: { 'Shop ID': 'shop_id' } };

describe('failed records', () => {
  it('of a CSV are kept as rows with the reason as the last column, and as NDJSON', async () => {
    const { file, records, failures } = await readAll(makeFile('shops.csv', text), options);
    const failed = new FailedFile(file);
    for (const { line, cells, problems } of failures)
      failed.add({
        line,
        cells,
        reason: problems.map(({ column, message }) => `${column ?? 'row'} ${message}`).join('; '),
      });
    for (const { line, cells, record } of records)
      failed.add({ line, cells, record, reason: 'region must be a country code' });
    expect(failed.close()).toEqual([`${file.path}.failed.ndjson`, `${file.path}.failed.csv`]);
    const rows = readFileSync(`${file.path}.failed.csv`, 'utf8').split('\n');
    expect(rows).toEqual([
      'Shop ID;name;region;is_public;failed_reason',
      expect.stringMatching(`^${ids.shop};"Fish; ""chips""";GB;maybe;"?is_public must be true or false`),
      expect.stringMatching(/^x;y;;;"row has 2 cells where the header has 4; check/),
      `${ids.shop};Corner Bakery;G1;yes;region must be a country code`,
      '',
    ]);
    const lines = readFileSync(`${file.path}.failed.ndjson`, 'utf8').trim().split('\n');
    expect(lines.map((line) => JSON.parse(line))[2]).toEqual({
      shop_id: ids.shop,
      name: 'Corner Bakery',
      region: 'G1',
      is_public: true,
      failed_reason: 'region must be a country code',
    });
  });

  it('are uploaded again without the reason once they are fixed, and may fail again', async () => {
    const { file } = await readAll(makeFile('shops.csv', text), options);
    const failed = new FailedFile(file);
    failed.add({
      line: 3,
      cells: [ids.shop, 'Corner Bakery', 'GB', 'yes'],
      record: { shop_id: ids.shop, region: 'GB' },
      reason: 'why',
    });
    const [ndjson, csv] = failed.close() as [string, string];
    expect((await readAll(ndjson)).sent).toEqual([{ shop_id: ids.shop, region: 'GB' }]);
    const again = await readAll(csv, options);
    expect(again.sent).toEqual([{ shop_id: ids.shop, name: 'Corner Bakery', region: 'GB', is_public: true }]);
    expect(again.file.ignoredColumns).toEqual([]);
    const failedAgain = new FailedFile(again.file);
    failedAgain.add({ ...again.records[0]!, reason: 'still' });
    const written = readFileSync(failedAgain.close()[1] as string, 'utf8');
    expect(written).toBe(
      `Shop ID;name;region;is_public;failed_reason\n${ids.shop};Corner Bakery;GB;yes;still\n`,
    );
  });

  it('of earlier uploads are kept, and those of earlier dry runs are not', async () => {
    const { file } = await readAll(makeFile('shops.csv', text), options);
    const write = (reason: string, isDryRun = false) => {
      const failed = new FailedFile(file, {}, isDryRun);
      failed.add({ line: 2, cells: ['1'], record: { shop_id: '1' }, reason });
      failed.close();
    };
    for (const reason of ['one', 'two', 'three']) {
      write(reason);
      write(reason, true);
    }
    new FailedFile(file).close();
    const folder = dirname(file.path);
    const names = readdirSync(folder).filter((name) => /^shops\.csv\..*failed\.csv$/.test(name));
    expect(names.toSorted()).toEqual([
      'shops.csv.1.failed.csv',
      'shops.csv.2.failed.csv',
      'shops.csv.3.failed.csv',
      'shops.csv.dry-run.failed.csv',
    ]);
    const reasons = names
      .toSorted()
      .map((name) => readFileSync(join(folder, name), 'utf8').trim().split(';').at(-1));
    expect(reasons).toEqual(['one', 'two', 'three', 'three']);
  });

  it('of a text that is not a record are kept as text', async () => {
    const { file, failures } = await readAll(makeFile('shops.ndjson', '{"shop_id":\n'));
    const failed = new FailedFile(file);
    failed.add({ line: 1, record: failures[0]!.record, reason: 'is not JSON' });
    const [path] = failed.close();
    expect(JSON.parse(readFileSync(path as string, 'utf8'))).toEqual({
      line: 1,
      text: '{"shop_id":',
      failed_reason: 'is not JSON',
    });
  });

  it('are not continued if somebody has shortened them, and are left alone by a dry run', async () => {
    const file = await openFile(makeFile('shops.csv', text), options);
    const first = new FailedFile(file);
    first.add({ line: 2, cells: ['1', 'a', 'GB', ''], record: { shop_id: '1' }, reason: 'one' });
    const written = first.flush();
    first.close();
    const path = `${file.path}.failed.csv`;
    expect(statSync(path).mode & 0o777).toBe(0o600);
    new FailedFile(file, {}, true).close();
    expect(existsSync(path)).toBe(true);
    writeFileSync(path, 'short');
    expect(() => new FailedFile(file, written)).toThrow('has changed since the upload was interrupted');
  });

  it('are not continued if somebody has moved them, until they are back or replaced by an empty file', async () => {
    const file = await openFile(makeFile('shops.csv', text), options);
    const first = new FailedFile(file);
    first.add({ line: 2, cells: ['1', 'a', 'GB', ''], record: { shop_id: '1' }, reason: 'one' });
    const written = first.flush();
    first.close();
    const path = `${file.path}.failed.csv`;
    renameSync(path, `${path}.moved`);
    expect(() => new FailedFile(file, written)).toThrow('put it back and use --resume again');
    writeFileSync(path, '');
    const second = new FailedFile(file, written);
    second.add({ line: 3, cells: ['2', 'b', 'GB', ''], record: { shop_id: '2' }, reason: 'two' });
    second.close();
    const header = 'Shop ID;name;region;is_public;failed_reason';
    expect(readFileSync(path, 'utf8')).toBe(`${header}\n2;b;GB;;two\n`);
    expect(readFileSync(`${path}.moved`, 'utf8')).toBe(`${header}\n1;a;GB;;one\n`);
  });

  it('are continued by another path to their folder, but not by another name', async () => {
    const path = makeFile('shops.csv', text);
    const first = new FailedFile(await openFile(path, options));
    first.add({ line: 2, cells: ['1', 'a', 'GB', ''], record: { shop_id: '1' }, reason: 'one' });
    const written = first.flush();
    first.close();
    const before = readFileSync(`${path}.failed.csv`, 'utf8');
    const file = await openFile(relative('.', path), options);
    new FailedFile(file, written).close();
    expect(readFileSync(`${path}.failed.csv`, 'utf8')).toBe(before);
    const link = join(dirname(path), 'shops-2.csv');
    symlinkSync(path, link);
    const linked = await openFile(link, options);
    expect(() => new FailedFile(linked, written)).toThrow('are in shops.csv.failed.ndjson');
  });

  it('have as many cells as columns if a row ends in empty ones', async () => {
    const file = await openFile(makeFile('shops.csv', text), options);
    const failed = new FailedFile(file);
    failed.add({ line: 2, cells: ['1', 'a', 'GB', '', '', ''], record: { shop_id: '1' }, reason: 'one' });
    failed.close();
    expect(readFileSync(`${file.path}.failed.csv`, 'utf8').split('\n')[1]).toBe('1;a;GB;;one');
  });

  it('are continued after an interruption, without what was written after the last flush', async () => {
    const file = await openFile(makeFile('shops.csv', text), options);
    const first = new FailedFile(file);
    first.add({ line: 2, cells: ['é', 'a', 'GB', ''], record: { shop_id: 'é' }, reason: 'one' });
    const written = first.flush();
    first.add({ line: 3, cells: ['2', 'b', 'GB', ''], record: { shop_id: '2' }, reason: 'lost' });
    first.close();
    for (const path of Object.keys(written)) appendFileSync(path, 'torn');
    const second = new FailedFile(file, written);
    expect(second.flush()).toEqual(written);
    expect(readFileSync(`${file.path}.failed.ndjson`, 'utf8')).toBe(
      '{"shop_id":"é","failed_reason":"one"}\n',
    );
    second.add({ line: 3, cells: ['2', 'b', 'GB', ''], record: { shop_id: '2' }, reason: 'two' });
    second.close();
    expect(readFileSync(`${file.path}.failed.csv`, 'utf8')).toBe(
      'Shop ID;name;region;is_public;failed_reason\né;a;GB;;one\n2;b;GB;;two\n',
    );
    expect(readFileSync(`${file.path}.failed.ndjson`, 'utf8')).toBe(
      '{"shop_id":"é","failed_reason":"one"}\n{"shop_id":"2","failed_reason":"two"}\n',
    );
  });

  it('leave no file if no row failed, not even from an earlier upload', async () => {
    const file = await openFile(makeFile('shops.csv', text), options);
    writeFileSync(`${file.path}.failed.ndjson`, '{}\n');
    const failed = new FailedFile(file);
    expect(failed.flush()).toEqual({});
    expect(failed.close()).toEqual([]);
    expect(existsSync(`${file.path}.failed.ndjson`)).toBe(false);
  });
});
