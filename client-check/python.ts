import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { here, installOnce } from './install.ts';
import { run } from './run.ts';

/** A client by openapi-python-client. */
export async function checkPython(scratch: string, args: readonly string[]): Promise<void> {
  const requirements = here('python/requirements.txt');
  const tools = await installOnce('client-check-python', requirements, async (folder) => {
    await run('python3', ['-m', 'venv', folder]);
    const strictly = ['--no-deps', '--require-hashes', '--only-binary=:all:'];
    await run(join(folder, 'bin/pip'), ['install', '--quiet', ...strictly, '-r', requirements]);
  });
  const folder = join(scratch, 'python');
  mkdirSync(folder);
  const bin = join(tools, 'bin');
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}`, PYTHONDONTWRITEBYTECODE: '1' };
  for (const [description, client] of [
    ['openapi.json', 'public_client'],
    ['admin-openapi.json', 'admin_client'],
  ] as const) {
    const options = ['--meta', 'none', '--fail-on-warning', '--output-path', join(folder, client)];
    const generator = join(bin, 'openapi-python-client');
    await run(generator, ['generate', '--path', here(`../${description}`), ...options], { env });
  }
  copyFileSync(here('python/client.py'), join(folder, 'client.py'));
  await run(join(bin, 'python'), [join(folder, 'client.py'), ...args], { env });
}
