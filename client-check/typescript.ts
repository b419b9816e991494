import { copyFileSync, symlinkSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { installOnce } from '../scripts/install-once.ts';
import { here } from './here.ts';
import { run } from './run.ts';

/** Types by openapi-typescript, used through openapi-fetch. */
export async function checkTypeScript(scratch: string, args: readonly string[]): Promise<void> {
  const tools = await installOnce(
    'client-check-typescript',
    here('typescript/package-lock.json'),
    (folder) => {
      for (const file of ['package.json', 'package-lock.json'])
        copyFileSync(here(`typescript/${file}`), join(folder, file));
      return run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder });
    },
  );
  const folder = join(scratch, 'typescript');
  await mkdir(folder);
  symlinkSync(join(tools, 'node_modules'), join(folder, 'node_modules'));
  for (const file of ['client.ts', 'tsconfig.json', 'package.json'])
    copyFileSync(here(`typescript/${file}`), join(folder, file));
  for (const name of ['openapi', 'admin-openapi']) {
    const generator = join(tools, 'node_modules/openapi-typescript/bin/cli.js');
    const output = join(folder, `${name}.d.ts`);
    await run(process.execPath, [generator, here(`../${name}.json`), '--output', output], { cwd: folder });
  }
  // With the compiler that users have today, and with ours, which is the next.
  for (const compiler of [
    join(tools, 'node_modules/typescript/bin/tsc'),
    here('../node_modules/typescript/bin/tsc'),
  ])
    await run(process.execPath, [compiler, '-p', folder]);
  await run(process.execPath, [join(folder, 'client.ts'), ...args]);
}
