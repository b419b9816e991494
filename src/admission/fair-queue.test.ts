import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { FairQueue } from './fair-queue.ts';

/** Records the order in which tasks start, and ends them on demand. */
function recorder(turns: FairQueue) {
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  return {
    begun,
    add(organisationId: string, name: string) {
      return turns.take(organisationId, async () => {
        begun.push(name);
        await new Promise<void>((resolve) => ends.push(resolve));
      });
    },
    async endNext() {
      ends.shift()?.();
      await sleep(0);
    },
  };
}

it('organisations take turns, however much one of them has waiting', async () => {
  const turns = new FairQueue({ atOnce: 1, waitingMax: 100 });
  const { begun, add, endNext } = recorder(turns);
  const all = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map((name) => add(name.charAt(0), name));
  await sleep(0);
  for (let count = 0; count < all.length; count++) await endNext();
  await Promise.all(all);
  expect(begun).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2']);
});

it('no organisation has more than its share at once, even if nobody else wants one', async () => {
  const turns = new FairQueue({ atOnce: 4, perOrganisationMax: 2, waitingMax: 100 });
  const { begun, add, endNext } = recorder(turns);
  const all = ['a1', 'a2', 'a3', 'b1'].map((name) => add(name.charAt(0), name));
  await sleep(0);
  expect(begun).toEqual(['a1', 'a2', 'b1']);
  await endNext();
  expect(begun).toEqual(['a1', 'a2', 'b1', 'a3']);
  for (let count = 0; count < all.length; count++) await endNext();
  await Promise.all(all);
});

it('a task with a smaller share waits for it, also in the queue', async () => {
  const turns = new FairQueue({ atOnce: 3, perOrganisationMax: 2, waitingMax: 100 });
  const end = await turns.begin('a', 1);
  let hasBegun = false;
  const second = turns.begin('a', 1).then((endSecond) => {
    hasBegun = true;
    endSecond();
  });
  (await turns.begin('b'))();
  await sleep(0);
  expect(hasBegun).toBe(false);
  end();
  await second;
});

it('a task that waits too long is refused, and does not get a turn later', async () => {
  const turns = new FairQueue({ atOnce: 1, waitingMax: 100, waitMs: 20 });
  const { begun, add, endNext } = recorder(turns);
  const first = add('a', 'a1');
  await expect(add('b', 'b1')).rejects.toMatchObject({ code: 'overloaded' });
  await endNext();
  await first;
  const last = add('c', 'c1');
  await sleep(0);
  await endNext();
  await last;
  expect(begun).toEqual(['a1', 'c1']);
});

it('a task is refused at once if the queue is full', async () => {
  const turns = new FairQueue({ atOnce: 1, waitingMax: 1 });
  const { add, endNext } = recorder(turns);
  const [first, second] = [add('a', 'a1'), add('a', 'a2')];
  await expect(add('b', 'b1')).rejects.toMatchObject({ code: 'overloaded' });
  await endNext();
  await endNext();
  await Promise.all([first, second]);
});

it('an organisation rests for as long as its task took, and the others do not wait for it', async () => {
  const turns = new FairQueue({ atOnce: 1, waitingMax: 100 });
  const task = (organisationId: string, ms: number) =>
    turns.take(
      organisationId,
      async () => {
        const beganMs = performance.now();
        await sleep(ms);
        return { beganMs, endedMs: performance.now() };
      },
      50,
    );
  const [first, second, other] = await Promise.all([task('a', 100), task('a', 1), task('b', 1)]);
  expect(other.beganMs).toBeLessThan(second.beganMs);
  // The timers of Node may be a millisecond early.
  expect(second.beganMs - first.endedMs).toBeGreaterThan(48);
});

it('a task that fails passes its turn to the next', async () => {
  const turns = new FairQueue({ atOnce: 1, waitingMax: 1 });
  await expect(turns.take('a', () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  await expect(turns.take('b', async () => 'done')).resolves.toBe('done');
});
