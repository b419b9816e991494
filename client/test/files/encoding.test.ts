import { describe, expect, it } from 'vitest';
import { ids, makeFile, readAll } from './support.ts';

const shops = (name: string) => `shop_id,name,region\n${ids.shop},${name},DE\n`;
const latin1 = (text: string) => Buffer.from(text, 'latin1');

describe('a text file that is not UTF-8', () => {
  it('is read as windows-1252, with a notice', async () => {
    const { file, sent } = await readAll(makeFile('shops.csv', latin1(shops('Bäckerei \x80'))));
    expect(sent[0]).toMatchObject({ name: 'Bäckerei €' });
    expect(file.detectedEncoding()).toBe('windows-1252');
  });

  it('is read in the specified encoding', async () => {
    const path = makeFile('shops.csv', latin1(shops('\xb9\xea')));
    const { file, sent } = await readAll(path, { encoding: 'iso-8859-2' });
    expect(sent[0]).toMatchObject({ name: 'šę' });
    expect(file.detectedEncoding()).toBeUndefined();
    await expect(readAll(path, { encoding: 'klingon' })).rejects.toThrow(
      /--encoding klingon is not an encoding that can be read; use one such as/,
    );
  });

  it('is recognised wherever its first such character is, even across two chunks', async () => {
    const header = 'shop_id,name,region\n';
    const row = (name: string) => `${ids.shop},${name},DE\n`;
    for (const beyond of [32_766, 32_767, 32_768, 100_000]) {
      const before =
        header + row('Bakery').repeat(Math.floor((beyond - header.length - 37) / row('Bakery').length));
      const name = 'x'.repeat(beyond - before.length - 37);
      for (const encoding of ['latin1', 'utf8'] as const) {
        const text = `${before}${ids.shop},${name}é,DE\n`;
        const { file, sent, failures } = await readAll(makeFile('shops.csv', Buffer.from(text, encoding)));
        expect(failures).toEqual([]);
        expect(sent.at(-1)).toMatchObject({ name: `${name}é` });
        expect(file.detectedEncoding()).toBe(encoding === 'utf8' ? undefined : 'windows-1252');
      }
    }
  });

  it('but has UTF-8 in it fails row by row, and so does one that cannot be windows-1252', async () => {
    const mixed = Buffer.concat([Buffer.from(shops('Bäckerei')), latin1(`${ids.shop},Bäckerei,DE\n`)]);
    for (const bytes of [mixed, latin1(shops('\x81\x9d'))]) {
      const { file, failures } = await readAll(makeFile('shops.csv', bytes));
      expect(failures).toMatchObject([{ problems: [{ column: 'name', code: 'invalid_characters' }] }]);
      expect(file.detectedEncoding()).toBeUndefined();
    }
  });

  it('may start with a byte order mark', async () => {
    for (const text of [
      Buffer.from(`\ufeff${shops('Bakery')}`),
      Buffer.from(`\ufeff${shops('Bäckerei')}`, 'utf16le'),
    ]) {
      const { sent, failures, file } = await readAll(makeFile('shops.csv', text));
      expect(failures).toEqual([]);
      expect(sent).toHaveLength(1);
      expect(file.detectedEncoding()).toBeUndefined();
    }
  });

  it('is read in JSON too', async () => {
    const path = makeFile(
      'shops.ndjson',
      latin1(`{"shop_id":"${ids.shop}","name":"Bäckerei","region":"DE"}\n`),
    );
    expect((await readAll(path)).sent[0]).toMatchObject({ name: 'Bäckerei' });
  });
});
