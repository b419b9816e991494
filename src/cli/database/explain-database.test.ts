import pg from 'pg';
import { expect, it } from 'vitest';
import { explainDatabase, type Target } from './explain-database.ts';

const setting = 'DATABASE_URL';
const url = 'postgres://somebody:hush@db.internal:5432/intake';

function explain(code: string, message: string, target: Partial<Target> = {}): string {
  const error = Object.assign(new pg.DatabaseError(message, 0, 'error'), { code });
  return explainDatabase(error, { setting, url, ...target }) ?? '';
}

const denied = 'permission denied for table organisations';

it('a command that needs the owner names itself, not migrate', () => {
  expect(explain('42501', denied, { command: 'cluster' })).toMatch(
    /; run cluster as the owner of the tables/,
  );
  expect(explain('42501', denied)).toMatch(/; run migrate as the owner of the tables/);
});

it.each(['intake_serve', 'intake_admin'] as const)(
  'a login without the privileges of %s counts as the wrong login, and no grant is advised',
  (role) => {
    const said = explain('42501', denied, { role });
    expect(said).toMatch(new RegExp(`set DATABASE_URL to one that is a member of ${role}`));
    expect(said).not.toMatch(/\bgrant\b/);
  },
);

it.each([
  [
    'connection refused',
    'Connection refused\nIs the server running?',
    /cannot reach a node .* check that the node is up/,
  ],
  ['a timeout', 'timeout expired', /cannot reach a node/],
  [
    'a refused login',
    'FATAL: password authentication failed',
    /cannot log in on a node .* accepts the user in DATABASE_URL/,
  ],
])('%s between nodes is reported as such', (_what, cause, expected) => {
  const message = `connection to the remote node somebody@10.0.0.2:5432 failed with the following error: ${cause}`;
  expect(explain('08006', message)).toMatch(expected);
});

it('a machine that pg_hba.conf does not list is not reported as a wrong password', () => {
  const said = explain(
    '28000',
    'no pg_hba.conf entry for host "10.0.0.9", user "somebody", database "intake", no encryption',
  );
  expect(said).toMatch(
    /does not accept this user from this machine: .*; check user, host and sslmode in DATABASE_URL/,
  );
});
