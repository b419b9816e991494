import { expect } from 'vitest';
import { accessPerson, downloadAccess } from '../support/access-person.ts';
import type { Api } from '../support/api.ts';
import { erasePerson } from '../support/erase-person.ts';
import { attackersDay, foreign, recordOf, shared, victimsWord } from './two-organisations.ts';

/** Tries the operations about people on another organisation's data, as an attacker would. */

interface Sides {
  readonly victim: Api;
  readonly attacker: Api;
  readonly anybody: Api;
  /** Sends a request as the attacker, and checks that the response does not contain any of the victim's data. */
  ask(question: { readonly method?: string; readonly path: string }): Promise<string>;
}

interface Tried {
  readonly method: string;
  readonly path: string;
}

export function peopleRules(sides: () => Sides): Record<string, (operation: Tried) => Promise<void>> {
  const ofOwn = async ({ method, path }: Tried) => {
    const { attacker, ask } = sides();
    const own = await erasePerson(attacker);
    expect(await ask({ method, path: path.replace(/\{\w+\}/, own) })).toMatch(/^200 /);
  };
  const ofOwnAccess = async ({ method, path }: Tried) => {
    const { attacker, ask } = sides();
    const own = await accessPerson(attacker, { customer_ids: [shared.customers] });
    const answer = await ask({ method, path: path.replace(/\{\w+\}/, own) });
    expect(answer).toMatch(/^200 .*customers/);
  };
  return {
    'erase-people': async () => {
      const { victim, attacker } = sides();
      const customer_ids = [foreign.customers as string];
      const people = { customer_ids, user_ids: [victimsWord] };
      const { body: counted } = await attacker.post('/v1/erasures?dry_run=true', people);
      expect([counted.known, ...Object.values(counted.rows)]).toEqual([0, 0, 0, 0, 0, 0]);
      await erasePerson(attacker, { customer_ids, user_ids: [victimsWord], mode: 'delete' });
      // The victim can still upload these people.
      const records = customer_ids.map((id) =>
        recordOf('customers', { ...shared, customers: id }, attackersDay, 'word'),
      );
      const { body } = await victim.post('/v1/data/customers?dry_run=true', { records });
      expect(body.batches[0].data.counts.failed).toBe(0);
    },
    'list-erasures': async ({ path }) => {
      const { attacker, ask } = sides();
      const own = await erasePerson(attacker);
      expect(await ask({ path: `${path}?limit=1000` })).toContain(own);
    },
    'get-erasure': ofOwn,
    'get-erasure-certificate': ofOwn,
    'lift-suppression': async ({ method, path }) => {
      const { attacker, ask } = sides();
      const own = await erasePerson(attacker);
      // The attacker has a lake that no process writes to, so the person has not been erased there.
      expect(await ask({ method, path: path.replace(/\{\w+\}/, own) })).toMatch(/^409 .*erasure_not_swept/);
    },
    'request-access': async () => {
      const { attacker } = sides();
      const sent = { customer_ids: [foreign.customers as string], user_ids: [victimsWord] };
      expect(await downloadAccess(attacker, await accessPerson(attacker, sent))).toEqual([]);
    },
    'list-access-requests': async ({ path }) => {
      const { attacker, ask } = sides();
      const own = await accessPerson(attacker);
      expect(await ask({ path: `${path}?limit=1000` })).toContain(own);
    },
    'get-access-request': ofOwnAccess,
    'download-access-request': ofOwnAccess,
    'cancel-access-request': ofOwnAccess,
    'list-erasure-keys': async ({ path }) => {
      const { victim, attacker, anybody } = sides();
      const answers = await Promise.all([victim, attacker, anybody].map((api) => api.get(path)));
      expect(answers.map(({ body }) => body.keys.length)).toEqual([1, 1, 1]);
    },
  };
}
