import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { startBuiltServer } from '../support/built-server.ts';
import { builtVersion } from '../support/built-version.ts';
import { freePort } from '../support/free-port.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(`${root}${file}`, 'utf8');

it('a build is not the last release, and states the same version with its commit everywhere', async () => {
  const { version } = JSON.parse(read('package.json'));
  expect(builtVersion.startsWith(`${version}+`)).toBe(true);
  expect(builtVersion).toMatch(/^\d+\.\d+\.\d+(-dev)?\+[0-9a-f]{12}(-dirty)?$/);
  const released = /^## (\d+\.\d+\.\d+) /m.exec(read('CHANGELOG.md'))?.[1];
  if (read('CHANGELOG.md').includes('\n## Unreleased\n')) expect(version).not.toBe(released);
  for (const program of ['dist/main.js', 'client/dist/command/main.js'])
    expect(execFileSync(process.execPath, [program, '--version'], { cwd: root, encoding: 'utf8' })).toBe(
      `${builtVersion}\n`,
    );
  const metricsPort = await freePort();
  const server = await startBuiltServer({ METRICS_PORT: String(metricsPort) });
  try {
    const described = await apiOf(server.url).get('/openapi.json');
    expect(described.body).toMatchObject({ info: { version: builtVersion } });
    const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    expect(metrics).toContain(`intake_build_info{version="${builtVersion}"`);
  } finally {
    await server.stop();
  }
});

it('the files in the repository state the version without the commit', () => {
  const { version } = JSON.parse(read('package.json'));
  for (const file of ['openapi.json', 'admin-openapi.json'])
    expect(JSON.parse(read(file)).info.version).toBe(version);
});
