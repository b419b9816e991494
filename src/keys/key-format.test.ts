import { expect, it } from 'vitest';
import { hashKey, keyIdOf, makeKey } from './key-format.ts';

it('a key contains its id', () => {
  const { key, keyId } = makeKey();
  expect(key).toMatch(/^intake_[0-9A-Za-z]{11}_[0-9A-Za-z]{49}$/);
  expect(keyIdOf(key)).toBe(keyId);
});

it('a change of any single character is detected without a lookup', () => {
  const { key } = makeKey();
  for (let at = 0; at < key.length; at++) {
    const other = key[at] === 'a' ? 'b' : 'a';
    expect(keyIdOf(key.slice(0, at) + other + key.slice(at + 1))).toBeUndefined();
  }
});

it('anything that is not a key is refused', () => {
  for (const text of [
    '',
    'intake_',
    'intake__',
    'Bearer x',
    `${makeKey().key} `,
    makeKey().key.slice(0, -1),
  ]) {
    expect(keyIdOf(text)).toBeUndefined();
  }
});

it('no two keys have the same id, key or hash', () => {
  const keys = Array.from({ length: 1_000 }, makeKey);
  expect(new Set(keys.map(({ keyId }) => keyId)).size).toBe(1_000);
  expect(new Set(keys.map(({ key }) => hashKey(key).toString('hex'))).size).toBe(1_000);
});
