import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { installPythonTools } from '../scripts/install-once.ts';
import { here } from './here.ts';
import { run } from './run.ts';

/** A client by openapi-python-client. */
export async function checkPython(scratch: string, args: readonly string[]): Promise<void> {
  const bin = await installPythonTools('client-check-python', here('python/requirements.txt'));
  const folder = join(scratch, 'python');
  mkdirSync(folder);
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}`, PYTHONDONTWRITEBYTECODE: '1' };
  for (const [description, client] of [
    ['openapi.json', 'public_client'],
    ['admin-openapi.json', 'admin_client'],
  ] as const) {
    const options = ['--meta', 'none', '--fail-on-warning', '--config', here('python/config.yaml')];
    const generator = join(bin, 'openapi-python-client');
    await run(
      generator,
      ['generate', '--path', here(`../${description}`), '--output-path', join(folder, client), ...options],
      { env },
    );
  }
  copyFileSync(here('python/client.py'), join(folder, 'client.py'));
  await run(join(bin, 'python'), [join(folder, 'client.py'), ...args], { env });
}
