import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { makeCertificate } from './certificate.ts';
import { freePort } from './free-port.ts';

const program = '/usr/sbin/nginx';
export const nginxIsInstalled = spawnSync(program, ['-v']).status === 0;
if (!nginxIsInstalled) console.log('Nothing is tried behind a proxy: nginx is not installed');

/** A separate nginx with the configuration recommended to operators. */
export interface Nginx {
  readonly url: string;
  /** nginx's self-signed certificate. */
  readonly ca: Buffer;
  /** Returns nginx's error log so far. */
  errors(): string;
  /** Returns nginx's request log, as configured. */
  requests(): string;
  /** Sends a signal to all of its processes. */
  signal(signal: NodeJS.Signals): void;
  /** Kills all of its processes, and starts it again on the same port. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts nginx in front of processes on these ports. */
export async function startNginx(ports: readonly number[]): Promise<Nginx> {
  const folder = mkdtempSync(join(tmpdir(), 'intake-nginx-'));
  chmodSync(folder, 0o755);
  const { certFile, keyFile, pem } = makeCertificate(folder, 'intake.example.com');
  const port = await freePort();
  const log = join(folder, 'error.log');
  const requests = join(folder, 'requests.log');
  const file = join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `worker_processes 2; pid ${folder}/nginx.pid; error_log ${log} warn;
events { worker_connections 512; }
http {
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
${documented(ports, port, certFile, keyFile, requests)}}
`,
  );
  const start = async () => {
    const started = spawn(program, ['-p', folder, '-c', file, '-e', log, '-g', 'daemon off;'], {
      stdio: 'ignore',
    });
    const ended = once(started, 'exit');
    for (let attempt = 0; !(await listens(port)); attempt++) {
      if (attempt === 4_800 || started.exitCode !== null) throw new Error(`nginx did not start; see ${log}`);
      await sleep(50);
    }
    return { started, ended };
  };
  let server = await start();
  const signal = (name: NodeJS.Signals) => {
    const { pid } = server.started;
    const { stdout } = spawnSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' });
    server.started.kill(name);
    spawnSync('kill', ['-s', name.slice(3), ...stdout.trim().split(/\s+/)]);
  };
  const stop = async () => {
    signal('SIGCONT');
    server.started.kill('SIGQUIT');
    await server.ended;
    rmSync(folder, { recursive: true, force: true });
  };
  return {
    signal,
    async restart() {
      signal('SIGKILL');
      await server.ended;
      server = await start();
    },
    url: `https://127.0.0.1:${port}`,
    ca: pem,
    errors: () => readFileSync(log, 'utf8'),
    requests: () => readFileSync(requests, 'utf8'),
    stop,
  };
}

/** Returns deploy/nginx/intake.conf with other paths and another number of processes. */
function documented(
  ports: readonly number[],
  port: number,
  certFile: string,
  keyFile: string,
  requests: string,
): string {
  let text = readFileSync(fileURLToPath(new URL('../../deploy/nginx/intake.conf', import.meta.url)), 'utf8');
  const replace = (from: string, to: string) => {
    if (!text.includes(from)) throw new Error(`deploy/nginx/intake.conf has no ${from}`);
    text = text.replace(from, to);
  };
  for (const [index, given] of ports.entries()) replace(`127.0.0.1:${8091 + index} `, `127.0.0.1:${given} `);
  text = text.replace(/^ +server 127\.0\.0\.1:809\d .*\n/gm, '');
  replace('/var/log/nginx/intake.log', requests);
  replace('listen 443 ', `listen 127.0.0.1:${port} `);
  replace('/etc/nginx/intake/cert.pem', certFile);
  replace('/etc/nginx/intake/key.pem', keyFile);
  return text;
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true));
    socket.on('connect', () => socket.destroy());
    socket.on('error', () => resolve(false));
  });
}
