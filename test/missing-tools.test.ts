import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { tools } from '../scripts/tools.ts';

const script = fileURLToPath(new URL('../scripts/tools.ts', import.meta.url));

it('every tool that is not installed is named', () => {
  const empty = mkdtempSync(join(tmpdir(), 'intake-no-tools-'));
  onTestFinished(() => rmSync(empty, { recursive: true }));
  const program = `import { missingTools } from ${JSON.stringify(script)}; console.log(JSON.stringify(missingTools()));`;
  const missingIn = (env: Record<string, string>): string[] =>
    JSON.parse(
      execFileSync(process.execPath, ['--input-type=module', '-e', program], {
        encoding: 'utf8',
        env: { ...process.env, ...env },
      }),
    );
  const missing = missingIn({ XDG_CACHE_HOME: empty, PATH: empty });
  const runtimes = process.arch === 'x64' ? ['deno', 'bun', 'workerd'] : [];
  expect(missing.filter((one) => !one.includes("of Debian's package"))).toEqual([...runtimes, ...tools]);
});
