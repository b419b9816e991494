// @module-tag full

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { freePort } from '../../test/support/free-port.ts';
import { newShop } from '../../test/support/new-records.ts';
import { Intake } from '../src/index.ts';
import { startHttpProxy } from './support/http-proxy.ts';

/** The number of interactions, which is too large for one request. */
const count = 1_500;
const executablePath = '/usr/bin/chromium-headless-shell';
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

interface Job {
  readonly url: string;
  readonly key: string;
  readonly item_id: string;
  readonly count: number;
}

let server: SharedServer;
let key: string;
/** A folder with the built library and the programs that use it. */
let folder: string;

const uses = (rest: string) =>
  `import * as library from './index.js'; import { recordMany } from './record-many.js'; ${rest}`;

beforeAll(async () => {
  server = await sharedServer();
  key = await server.createKey('runtimes');
  folder = mkdtempSync(join(tmpdir(), 'intake-runtimes-'));
  cpSync(here('../dist'), folder, { recursive: true });
  cpSync(here('support/record-many.js'), join(folder, 'record-many.js'));
  const put = (name: string, text: string) => writeFileSync(join(folder, name), text);
  put('package.json', '{"type":"module"}');
  put('main.js', uses('console.log(JSON.stringify(await recordMany(library, JSON.parse(process.argv[2]))))'));
  put(
    'thread.js',
    uses(`import { parentPort, workerData } from 'node:worker_threads';
          parentPort.postMessage(await recordMany(library, workerData))`),
  );
  put('worker.js', uses('onmessage = async ({ data }) => postMessage(await recordMany(library, data))'));
  put(
    'fetch.js',
    uses(`export default {
      async fetch(request) {
        if (request.method !== 'POST') return new Response('ready');
        return Response.json(await recordMany(library, await request.json()));
      }
    }`),
  );
});

afterAll(() => rmSync(folder, { recursive: true }));

/**
 * Checks that every interaction is stored once. The first request is stored but its response is lost, so the runtime has to
 * send it again.
 */
async function expectStoredOnce(run: (job: Job) => Promise<string[]>): Promise<void> {
  const intake = new Intake({ url: server.url, key });
  const shop = newShop();
  await intake.upload('shops', [shop]).finish();
  const proxy = await startHttpProxy(server.url, (_, requests) => (requests === 1 ? 'cut after' : 'pass'));
  onTestFinished(() => proxy.close());
  const ids = await run({ url: proxy.url, key, item_id: shop.shop_id, count });
  const stored: [string, string][] = [];
  for await (const { interaction_id, user_id } of intake.interactions.list({
    item_id: shop.shop_id,
    limit: 1_000,
  }))
    stored.push([String(user_id), interaction_id]);
  expect(stored).toHaveLength(count);
  expect(Object.fromEntries(stored)).toEqual(Object.fromEntries(ids.map((id, at) => [`mark ${at}`, id])));
  const keys = proxy.seen.map(({ headers }) => headers['idempotency-key']);
  expect(keys).toHaveLength(3);
  expect(new Set(keys).size).toBe(2);
  expect(keys[1]).toBe(keys[0]);
}

function onPath(program: string): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.map((path) => join(path, program)).find(existsSync);
}

/** Runs an ordinary script without the tests' environment variables. */
async function runScript(program: string, args: readonly string[], job: Job): Promise<string[]> {
  const env = { HOME: folder, DENO_NO_UPDATE_CHECK: '1' };
  const { stdout } = await promisify(execFile)(program, [...args, 'main.js', JSON.stringify(job)], {
    cwd: folder,
    env,
    maxBuffer: 1e7,
  });
  return JSON.parse(stdout);
}

it('records from a worker thread of Node', () =>
  expectStoredOnce(async (job) => {
    const worker = new Worker(join(folder, 'thread.js'), { workerData: job });
    const [ids] = await once(worker, 'message');
    return ids;
  }));

const deno = onPath('deno');
it.skipIf(!deno)('records from Deno, with only the network permission (needs deno on the path)', () =>
  expectStoredOnce((job) => runScript(deno!, ['run', '--no-prompt', '--allow-net=127.0.0.1'], job)),
);

const bun = onPath('bun');
it.skipIf(!bun)('records from Bun (needs bun on the path)', () =>
  expectStoredOnce((job) => runScript(bun!, ['run'], job)),
);

const workerd = onPath('workerd');
it.skipIf(!workerd)('records from a worker at the edge (needs workerd on the path)', () =>
  expectStoredOnce(async (job) => {
    const port = await freePort();
    // The configuration lists all modules, starting with the worker's. The command's modules are excluded, because they need
    // Node.
    const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    const ofLibrary = names.filter((name) =>
      /^((generated|interactions|lake|reading|uploading)\/)?(?!main|thread|worker|fetch)[\w-]+\.js$/.test(
        name,
      ),
    );
    const modules = ['fetch.js', ...ofLibrary].map(
      (name) => `(name = "${name}", esModule = embed "${name}")`,
    );
    writeFileSync(
      join(folder, 'config.capnp'),
      `using Workerd = import "/workerd/workerd.capnp";
       const config :Workerd.Config = (
         services = [
           (name = "main", worker = (
             modules = [${modules.join(', ')}],
             compatibilityDate = "2026-01-01", globalOutbound = "network")),
           (name = "network", network = (allow = ["local"])),
         ],
         sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
       );`,
    );
    const worker = spawn(workerd!, ['serve', 'config.capnp'], {
      cwd: folder,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const ended = once(worker, 'exit');
    onTestFinished(async () => {
      worker.kill();
      await ended;
    });
    const url = `http://127.0.0.1:${port}`;
    const isUp = () =>
      fetch(url).then(
        () => true,
        () => false,
      );
    await expect.poll(isUp).toBe(true);
    const answer = await fetch(url, { method: 'POST', body: JSON.stringify(job) });
    return (await answer.json()) as string[];
  }),
);

it.skipIf(!existsSync(executablePath))('records from a worker in a browser (needs headless Chromium)', () =>
  expectStoredOnce(async (job) => {
    // The page may only call its own origin, so the site forwards the page's requests to the service.
    const site = createServer((incoming, outgoing) => {
      const path = join(folder, incoming.url ?? '/');
      if (incoming.method !== 'POST') {
        const isScript = path.endsWith('.js') && existsSync(path);
        outgoing.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
        return void outgoing.end(isScript ? readFileSync(path) : '');
      }
      const { method, headers } = incoming;
      const onward = request(job.url + incoming.url, { method, headers }, (answer) =>
        answer.pipe(outgoing.writeHead(answer.statusCode ?? 502, answer.headers)),
      );
      onward.on('error', () => incoming.socket.destroy());
      incoming.pipe(onward);
    }).listen(0, '127.0.0.1');
    await once(site, 'listening');
    const browser = await chromium.launch({
      executablePath,
      args: ['--no-sandbox', '--disable-gpu'],
      timeout: 240_000,
    });
    onTestFinished(async () => {
      await browser.close();
      site.close();
    });
    const page = await browser.newPage();
    page.setDefaultTimeout(240_000);
    const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
    await page.goto(url);
    return page.evaluate(
      (sent) =>
        new Promise<string[]>((resolve, reject) => {
          const worker = new window.Worker('/worker.js', { type: 'module' });
          worker.onmessage = ({ data }) => resolve(data);
          worker.onerror = ({ message }) => reject(new Error(message));
          worker.postMessage(sent);
        }),
      { ...job, url },
    );
  }),
);
