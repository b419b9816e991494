// @module-tag full

import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { sharedServer } from '../../test/support/built-server.ts';
import { resources, resourceTypes } from '../src/generated/resources.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);
const { paths } = JSON.parse(readFileSync(join(root, 'openapi.json'), 'utf8'));

function sampleOf(path: string, label: string): string {
  const samples: { label: string; source: string }[] = paths[path].post['x-codeSamples'];
  return samples.find((sample) => sample.label === label)?.source ?? '';
}

it('the examples of every upload in the API reference, pasted, store the record they show', async () => {
  const server = await sharedServer();
  const folder = mkdtempSync(join(tmpdir(), 'intake-samples-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(join(root, 'client'), join(folder, 'node_modules/intake-client'));
  const [PATH = ''] = [process.env.PATH];
  const env = { PATH, INTAKE_URL: server.url, INTAKE_KEY: await server.createKey('samples') };
  const ordered = resourceTypes.toSorted((one, two) => resources[one].order - resources[two].order);
  for (const type of ordered) {
    const path = `/v1/data/${type}`;
    const { stdout } = await run('bash', ['-euc', sampleOf(path, 'curl')], { env });
    expect(JSON.parse(stdout).batches[0].data.counts, type).toMatchObject({ received: 1, created: 1 });
  }
  const programs = [
    ...ordered.map((type) => `/v1/data/${type}`),
    '/user-interactions',
    '/user-interactions/batch',
  ];
  for (const [at, path] of programs.entries()) {
    writeFileSync(join(folder, `${at}.mjs`), sampleOf(path, 'intake-client'));
    const { stdout } = await run(process.execPath, [`${at}.mjs`], { cwd: folder, env });
    expect(stdout, path).toMatch(/received: 1,(.|\n)*failed: 0(.|\n)*\[\]|interaction_id/);
  }
});
