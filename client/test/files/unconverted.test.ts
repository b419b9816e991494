import { expect, it } from 'vitest';
import type { FileFailure, FileOptions } from '../../src/parsing/opened-file.ts';
import { ids, makeFile, readAll } from './support.ts';

const shown = ({ line, sendable }: FileFailure) => [line, sendable !== undefined];

async function sendable(name: string, text: string, options: FileOptions = {}) {
  const { failures } = await readAll(makeFile(name, text), options);
  return failures.map(shown);
}

it('a row is sent with the text of its cells only if the service rejects each of them', async () => {
  const header = 'transaction_id,shop_id,region,savings,amount,created,updated';
  const row = (amount: string, created: string, updated: string) =>
    `${ids.transaction},${ids.shop},GB,1,${amount},${created},${updated}\n`;
  const text = `${header}\n${row('a lot', 'yesterday', '')}${row('a lot', '2026-03-14T09:00Z', '')}${row('2', '2026-03-14T09:00Z', '')}${row('2', '', '14.3.26')}x\n`;
  expect(await sendable('transactions.csv', text, { dateFormat: 'yyyy-dd-MM' })).toEqual([
    [2, true],
    [3, false],
    [4, false],
    [5, true],
    [6, false],
  ]);
});

it('a row whose own key is empty or whose characters are unknown is not sent', async () => {
  const text =
    'Code,name,region,is_public\n,a,GB,no\n,a,GB,maybe\nK1,a,GB,maybe\nK2,é,GB,no\nK3,\ufffd,GB,maybe\n';
  expect(await sendable('shops.csv', text, { idFrom: ['Code'] })).toEqual([
    [2, false],
    [3, false],
    [4, true],
    [6, false],
  ]);
  const objects = [
    { Code: '' },
    { Code: 'K1', created: '31.31.2026' },
    { Code: 'K2', created: '2026-03-14T09:00Z' },
  ];
  const options = { idFrom: ['Code'], dateFormat: 'yyyy-dd-MM', map: { Code: 'shop_id' } };
  const lines = objects.map((one) => `${JSON.stringify({ name: 'a', region: 'GB', ...one })}\n`).join('');
  expect(await sendable('shops.ndjson', lines, options)).toEqual([
    [1, false],
    [2, true],
    [3, false],
  ]);
});

it('digits that are no day in a format of digits are not taken for seconds since 1970', async () => {
  const text = `interaction_type,item_type,item_id,event_timestamp\n${['20260314', '20260231', '1773480413', ''].map((time) => `SHARE,SHOP,${ids.shop},${time}\n`).join('')}`;
  const { sent, failures } = await readAll(makeFile('interactions.csv', text), { dateFormat: 'yyyyMMdd' });
  expect(sent.map(({ event_timestamp }) => event_timestamp)).toEqual(['2026-03-14T00:00:00Z', undefined]);
  expect(failures.map(shown)).toEqual([
    [3, true],
    [4, true],
  ]);
});
