import { expect, it } from 'vitest';
import { hashKey, keyIdOf, makeKey } from './key-format.ts';

it('a key carries its id and is found whole', () => {
  const { key, keyId } = makeKey();
  expect(key).toMatch(/^intake_[0-9A-Za-z]{11}_[0-9A-Za-z]{49}$/);
  expect(keyIdOf(key)).toBe(keyId);
});

it('any single character changed is noticed without a look-up', () => {
  const { key } = makeKey();
  for (let at = 0; at < key.length; at++) {
    const other = key[at] === 'a' ? 'b' : 'a';
    expect(keyIdOf(key.slice(0, at) + other + key.slice(at + 1))).toBeUndefined();
  }
});

it('what is no key at all is refused', () => {
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

it('no two keys are alike, in id, key or hash', () => {
  const keys = Array.from({ length: 1_000 }, makeKey);
  expect(new Set(keys.map(({ keyId }) => keyId)).size).toBe(1_000);
  expect(new Set(keys.map(({ key }) => hashKey(key).toString('hex'))).size).toBe(1_000);
});
