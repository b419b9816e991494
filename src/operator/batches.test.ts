import { expect, it } from 'vitest';
import { inBatches, inGroups } from './batches.ts';

async function* later<T>(items: readonly T[]) {
  for (const item of items) yield await Promise.resolve(item);
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

const words = ['apple', 'avocado', 'almond', 'banana', 'cherry', 'coconut'];
const initialOf = (word: string) => word[0] as string;

it('a batch has at most the given number of entries, and one key', async () => {
  expect(await all(inBatches(words, 4))).toEqual([words.slice(0, 4), words.slice(4)]);
  expect(await all(inBatches(later(words), 2, initialOf))).toEqual([
    ['apple', 'avocado'],
    ['almond'],
    ['banana'],
    ['cherry', 'coconut'],
  ]);
  expect(await all(inBatches([], 2))).toEqual([]);
});

it('each group has all of its batches, even if the one before was not read or only in part', async () => {
  const read = async (partly: (key: string) => boolean) => {
    const groups: [string, readonly string[]][] = [];
    for await (const [key, batches] of inGroups(later(words), 2, initialOf)) {
      const found: string[] = [];
      for await (const batch of batches) {
        found.push(...batch);
        if (partly(key)) break;
      }
      groups.push([key, found]);
    }
    return groups;
  };
  const whole = [
    ['a', words.slice(0, 3)],
    ['b', ['banana']],
    ['c', words.slice(4)],
  ];
  expect(await read(() => false)).toEqual(whole);
  expect(await read((key) => key === 'a')).toEqual([['a', words.slice(0, 2)], ...whole.slice(1)]);
  const keys: string[] = [];
  for await (const [key] of inGroups(words, 1, initialOf)) keys.push(key);
  expect(keys).toEqual(['a', 'b', 'c']);
});

it('entries are closed when reading ends early', async () => {
  let isClosed = false;
  async function* closing() {
    try {
      yield* words;
    } finally {
      isClosed = true;
    }
  }
  for await (const [key] of inGroups(closing(), 2, initialOf)) if (key === 'a') break;
  expect(isClosed).toBe(true);
});
