import { parseArgs } from 'node:util';
import { limits } from '../limits.ts';
import { issueToken, type ListedToken, listTokens, revokeToken } from '../operator/admin-tokens.ts';
import { slugProblem } from '../operator/rules.ts';
import { commandError } from './arguments/help.ts';
import { operator, printAll, stateOf } from './arguments/operator.ts';
import { readExpiry } from './arguments/periods.ts';
import { withPool } from './database/with-pool.ts';

export async function run([action, ...args]: string[]): Promise<void> {
  if (action === 'issue') return issue(args);
  if (action === 'list') return list(args);
  if (action === 'revoke') return revoke(args);
  throw commandError('tokens expects issue, list or revoke; run intake-server tokens --help for examples');
}

async function issue(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      'read-only': { type: 'boolean', default: false },
      expires: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  const name = oneName(positionals, 'issue');
  const problem = slugProblem(name);
  if (problem !== undefined) throw commandError(`the name ${problem}`);
  const role = values['read-only'] ? 'read-only' : 'full';
  const expiresAt = values.expires === undefined ? null : readExpiry(values.expires);
  const issued = await withPool((pool) => issueToken(pool, operator(), { name, role, expiresAt }));
  if (!issued) throw commandError(`the name ${name} is taken, even after a revocation; choose another`);
  if (values.json) return console.log(JSON.stringify(issued));
  const end =
    issued.expires_at === null ? 'never expires (--expires sets an end)' : `expires ${issued.expires_at}`;
  console.log(`Issued the ${role} token ${name}, which ${end}.`);
  console.log(`\n  ${issued.token}\n`);
  console.log('Keep it safe: it is shown only once and is not stored.');
}

async function list(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: { json: { type: 'boolean', default: false } } });
  await withPool((pool) =>
    printAll((after) => listTokens(pool, after, limits.listedPerPageMax), {
      json: values.json,
      columns: ['name', 'role', 'issued', 'issued by', 'state'],
      nameOf: ({ name }) => name,
      lineOf: (token: ListedToken) =>
        [token.name, token.role, token.created_at, token.created_by, stateOf(token)].join('\t'),
    }),
  );
}

async function revoke(args: string[]): Promise<void> {
  const { positionals } = parseArgs({ args, allowPositionals: true, options: {} });
  const name = oneName(positionals, 'revoke');
  if (!(await withPool((pool) => revokeToken(pool, operator(), name))))
    throw commandError(`there is no token "${name}"; tokens list shows them`);
  console.log(`Revoked the token ${name}: every process refuses it from now on.`);
}

/** The command never takes the token itself, which would stay in the shell history. */
function oneName(positionals: readonly string[], action: string): string {
  const [name, ...rest] = positionals;
  if (name === undefined || rest.length > 0)
    throw commandError(`specify one name, such as deploy: tokens ${action} <name>`);
  if (name.startsWith('intake_')) throw commandError('specify the name of the token, not the token');
  return name;
}
