import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { judgeRows } from '../../test/fault/erasure-mixture/oracle.ts';
import { Ledger, type Sent } from './ledger.ts';

const sent = (version: number): Sent => ({
  table: 'tags',
  id: 'one',
  version,
  values: { name: `version ${version}` },
  student: null,
  user: null,
  isBroken: false,
});

function judged(ledger: Ledger, ...versions: number[]): string | null {
  const rows = versions.map((version) => ({ name: `version ${version}` }));
  return judgeRows(ledger.table('tags').get('one') ?? [], rows);
}

function send(ledger: Ledger, version: number) {
  const [write] = ledger.begin([sent(version)]);
  if (!write) throw new Error('nothing was noted');
  return write;
}

it('what was acknowledged must be there, in this version or a later one', () => {
  const ledger = new Ledger();
  ledger.settle(send(ledger, 1), 'stored');
  expect(judged(ledger)).toBe('lost');
  expect(judged(ledger, 1)).toBe(null);
  ledger.settle(send(ledger, 2), 'stored');
  expect(judged(ledger, 1)).not.toBe(null);
  expect(judged(ledger, 2)).toBe(null);
  expect(judged(ledger, 2, 2)).toBe('stored twice');
});

it('what was refused must not be there, and what was not answered may be', () => {
  const ledger = new Ledger();
  ledger.settle(send(ledger, 1), 'stored');
  ledger.settle(send(ledger, 2), 'refused');
  send(ledger, 3);
  expect(judged(ledger, 1)).toBe(null);
  expect(judged(ledger, 2)).not.toBe(null);
  expect(judged(ledger, 3)).toBe(null);
});

it('after a restore, the state of the backup must be there, and nothing later', async () => {
  const ledger = new Ledger();
  ledger.settle(send(ledger, 1), 'stored');
  await sleep(5);
  ledger.remember();
  await sleep(5);
  ledger.settle(send(ledger, 2), 'stored');
  await sleep(5);
  ledger.remembered();
  await sleep(5);
  ledger.settle(send(ledger, 3), 'stored');
  expect(judged(ledger, 1)).not.toBe(null);
  ledger.rewind();
  expect(judged(ledger)).toBe('lost');
  expect(judged(ledger, 1)).toBe(null);
  // It was sent while the backup was made.
  expect(judged(ledger, 2)).toBe(null);
  expect(judged(ledger, 3)).not.toBe(null);
});

it('repeated acknowledgements count once', () => {
  const ledger = new Ledger();
  const write = send(ledger, 1);
  ledger.settle(write, 'stored');
  ledger.settle(write, 'stored');
  expect(ledger.acknowledged).toBe(1);
});
