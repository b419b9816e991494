import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { type Drill, drills } from '../test/observability/drills.ts';

/**
 * Implements `npm run drills [-- --write] [names]`, which causes outages in running processes and prints the observations.
 */
const { values, positionals } = parseArgs({
  options: { write: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const known = Object.keys(drills);
const unknown = positionals.filter((name) => !known.includes(name));
if (unknown.length > 0) {
  console.error(`There is no drill ${unknown.join(', ')}. There are ${known.join(', ')}.`);
  process.exit(1);
}
const names = positionals.length > 0 ? positionals : known;
for (const [name, { title, alerts }] of Object.entries<Drill>(drills))
  if (names.includes(name)) console.log(`${name}: ${title}; ${alerts.join(' and ')} must fire, and end`);
const env = { ...process.env, DRILLS: names.join(','), ...(values.write && { DRILLS_WRITE: '1' }) };
const args = ['vitest', 'run', 'test/observability/drills.test.ts', '--disable-console-intercept'];
const [code] = await once(spawn('npx', args, { stdio: 'inherit', env }), 'exit');
process.exitCode = code ?? 1;
