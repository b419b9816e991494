import { expect } from 'vitest';
import type { Api } from '../support/api.ts';
import { attackersDay, openSameRun, recordOf, shared } from './two-organisations.ts';

/** Tries the operations about runs on another organisation's data, as an attacker would. */

interface Sides {
  readonly attacker: Api;
  /** The id of a run of the victim. */
  readonly foreign: string;
  /** Sends a request as the attacker, and checks that the response does not contain any of the victim's data. */
  ask(question: { readonly method?: string; readonly path: string; readonly body?: object }): Promise<string>;
}

interface Tried {
  readonly method: string;
  readonly path: string;
}

export function runRules(sides: () => Sides): Record<string, (operation: Tried) => Promise<void>> {
  const ofOwn =
    (body?: object) =>
    async ({ method, path }: Tried) => {
      const { attacker, ask } = sides();
      const files = [{ name: 'tags.csv', bytes: 1, sha256: '9f'.repeat(32), type: 'tags' }];
      const { body: run } = await attacker.post('/v1/runs', { name: 'own', files });
      const asked = { method, path: path.replace('{run_id}', run.run_id), ...(body && { body }) };
      expect(await ask(asked)).toMatch(/^200 /);
    };
  return {
    'open-run': async () => {
      const { attacker, foreign } = sides();
      expect(await openSameRun(attacker)).not.toBe(foreign);
      const records = [recordOf('tags', shared, attackersDay, 'word')];
      const uploaded = await attacker.post(`/v1/data/tags?run_id=${foreign}&file=0`, { records });
      expect([uploaded.status, uploaded.body.code]).toEqual([404, 'run_not_found']);
      for (const [action, body] of [
        ['end', { status: 'failed' }],
        ['heartbeat', {}],
      ] as const) {
        const { status } = await attacker.post(`/v1/runs/${foreign}/${action}`, body);
        expect([action, status]).toEqual([action, 404]);
      }
    },
    'end-run': ofOwn({ status: 'finished' }),
    'note-heartbeat': ofOwn(),
    'get-run': ofOwn(),
    'list-runs': async ({ path }) => {
      const { attacker, foreign } = sides();
      const { body } = await attacker.get(`${path}?limit=100`);
      expect(body.runs.map(({ run_id }: { run_id: string }) => run_id)).not.toContain(foreign);
    },
  };
}
