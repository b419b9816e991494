import { execFile, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const programs = ['buildah', 'podman', 'runc', 'dpkg'];
export const containersArePossible =
  process.getuid?.() === 0 &&
  process.arch === 'x64' &&
  programs.every((program) => !spawnSync(program, ['--version']).error) &&
  spawnSync('unshare', ['--mount', 'true']).status === 0;
if (!containersArePossible)
  console.log(`No container is run: that needs root, x86-64 and Debian's ${programs.join(', ')}`);

/** A separate image store, because the base images are built under their public names. It is kept to make reruns fast. */
const store = ['--root', '/var/cache/intake-containers', '--runroot', '/run/intake-containers'];

export const podman = (...args: string[]) => run('podman', [...store, '--runtime', 'runc', ...args]);

/** Options that confine the container as in docs/operating/setup.md. */
export const confined = [
  ...['--network', 'host', '--read-only', '--read-only-tmpfs=false', '--cap-drop', 'ALL'],
  ...['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1024:1024'],
];

/**
 * Builds a Dockerfile without a registry. Its base images are built from the local Debian and Node, so the build uses a copy
 * without their digests.
 */
export async function buildImage(
  dockerfile: string,
  args: Readonly<Record<string, string>>,
  tag: string,
  cwd: string,
) {
  const text = readFileSync(join(cwd, dockerfile), 'utf8').replaceAll(/(?<=^FROM \S+)@sha256:\w+/gm, '');
  const copy = join(mkdtempSync(join(tmpdir(), 'intake-dockerfile-')), 'Dockerfile');
  writeFileSync(copy, text);
  for (const base of new Set([...text.matchAll(/^FROM (\S+)/gm)].map(([, name = '']) => name)))
    await assemble(base);
  const { stdout } = await run('npm', ['config', 'get', 'cache'], { cwd });
  const cache = stdout.trim();
  mkdirSync(cache, { recursive: true });
  // Without layers, buildah stores only the last stage. Storing each step costs more than a repeated build could save.
  const how = ['--layers=false', '--isolation', 'chroot', '--network', 'host', '--pull-never'];
  // The OCI format does not support health checks.
  const format = ['--format', 'docker', '--volume', `${cache}:/root/.npm`];
  const given = Object.entries(args).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]);
  await run('buildah', [...store, 'bud', ...how, ...format, ...given, '-f', copy, '-t', tag, '.'], {
    cwd,
    maxBuffer: 1e8,
  });
  rmSync(dirname(copy), { recursive: true });
}

/** The packages that distroless images contain. */
const libraries = 'base-files libc6 libgcc-s1 libstdc++6 libssl3 ca-certificates tzdata netbase';
const tools = 'dash coreutils findutils sed grep libacl1 libattr1 libgmp10 libselinux1 libpcre2-8-0';
const authorities = '/etc/ssl/certs/ca-certificates.crt';

async function assemble(name: string): Promise<void> {
  const withNode = name.startsWith('node:');
  const version = withNode ? process.version : 'none';
  const registry = withNode ? 'docker.io/library/' : '';
  const found = await podman(
    'image',
    'inspect',
    '--format',
    '{{.Config.Labels.node}}',
    registry + name,
  ).catch(() => undefined);
  if (found?.stdout.trim() === version) return;
  const folder = mkdtempSync(join(tmpdir(), 'intake-base-'));
  try {
    for (const each of ['tmp', 'etc/ssl/certs', 'usr/local/bin', 'usr/local/lib'])
      mkdirSync(join(folder, each), { recursive: true });
    chmodSync(folder, 0o755);
    for (const each of ['bin', 'sbin', 'lib', 'lib64']) {
      mkdirSync(join(folder, 'usr', each));
      symlinkSync(`usr/${each}`, join(folder, each));
    }
    await copyPackages(withNode ? `${libraries} ${tools}` : libraries, folder);
    cpSync(authorities, join(folder, authorities), { dereference: true });
    writeFileSync(join(folder, 'etc/passwd'), 'root:x:0:0::/root:\nnonroot:x:65532:65532::/home/nonroot:\n');
    if (withNode) copyNode(folder);
    const environment = withNode
      ? { NODE_EXTRA_CA_CERTS: authorities, npm_config_prefer_offline: 'true' }
      : {};
    const changes = [
      `LABEL node=${version}`,
      ...Object.entries(environment).map(([key, value]) => `ENV ${key}=${value}`),
    ].flatMap((change) => ['--change', change]);
    const tar = join(folder, '..', `${folder.split('/').at(-1)}.tar`);
    await run('tar', ['-C', folder, '-cf', tar, '.']);
    await podman('import', '--quiet', ...changes, tar, registry + name);
    rmSync(tar);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Copies the files of installed packages, except documentation. */
async function copyPackages(names: string, folder: string): Promise<void> {
  const copy = `dpkg -L ${names} | grep '^/.*/' | grep -vE '/share/(doc|man|locale)/' | sort -u |
    tar -C / --no-recursion --ignore-failed-read -cf - -T - | tar -C ${folder} --keep-directory-symlink -xf -`;
  await run('bash', ['-c', copy]);
}

function copyNode(folder: string): void {
  cpSync(process.execPath, join(folder, 'usr/local/bin/node'));
  const npm = spawnSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).stdout.trim();
  cpSync(dirname(dirname(realpathSync(npm))), join(folder, 'usr/local/lib/node_modules/npm'), {
    recursive: true,
    verbatimSymlinks: true,
  });
  for (const name of ['npm', 'npx'])
    symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(folder, 'usr/local/bin', name));
}
