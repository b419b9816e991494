import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished, vi } from 'vitest';
import { type LakeStore, openStore } from '../../src/lake/store/lake-store.ts';
import { probeCreate } from '../../src/lake/store/store-paths.ts';
import { listed, temporaryFolder } from '../support/lake.ts';

function folderStore(): { root: string; store: LakeStore } {
  const root = join(temporaryFolder(), 'lake');
  return { root, store: openStore(pathToFileURL(root).href) };
}

const bytes = (text: string) => Buffer.from(text);

it('creates a file once, however many try at the same time, and it is whole', async () => {
  const { root, store } = folderStore();
  const texts = Array.from({ length: 20 }, (_, at) => String(at).repeat(10_000));
  const created = await Promise.all(texts.map((text) => store.create('acme/log/0.json', bytes(text))));
  expect(created.filter((isCreated) => isCreated).length).toBe(1);
  expect((await store.read('acme/log/0.json'))?.toString()).toBe(texts[created.indexOf(true)]);
  expect(readdirSync(join(root, 'acme/log'))).toEqual(['0.json']);
  // A writer that got no response sends the same bytes again.
  expect(await store.create('acme/log/0.json', bytes(texts[created.indexOf(true)]!))).toBe(true);
});

it('replaces a file as a whole, and only its owner can read it', async () => {
  const { root, store } = folderStore();
  const localFile = join(temporaryFolder(), 'local');
  for (const text of ['before', 'after']) {
    writeFileSync(localFile, text, { mode: 0o644 });
    await store.putFile('acme/x', localFile);
    expect((await store.read('acme/x'))?.toString()).toBe(text);
  }
  for (const path of ['acme', 'acme/x']) expect(statSync(join(root, path)).mode & 0o077).toBe(0);
  const copy = join(temporaryFolder(), 'copy');
  await store.getFile('acme/x', copy);
  expect(statSync(copy).size).toBe(5);
  await expect(store.getFile('acme/x', copy)).rejects.toThrow('EEXIST');
});

it('reads parts, and nothing for a file that does not exist', async () => {
  const { store } = folderStore();
  await store.create('acme/x', bytes('0123456789'));
  expect(String(await store.readRange('acme/x', 2, 5))).toBe('234');
  expect(String(await store.readRange('acme/x', 8, 20))).toBe('89');
  expect(await store.read('acme/y')).toBeUndefined();
  await store.remove('acme/x');
  await store.remove('acme/x');
  expect(await store.read('acme/x')).toBeUndefined();
});

it('lists the files below a folder in the order of their paths', async () => {
  const { store } = folderStore();
  const paths = ['a/b/2', 'a/b/1', 'a/b-c', 'a/d', 'ab/x'];
  for (const path of paths) await store.create(path, bytes(path));
  const found = await listed(store, 'a');
  expect(found.map(({ path }) => path)).toEqual(['a/b-c', 'a/b/1', 'a/b/2', 'a/d']);
  expect(await listed(store, 'nothing')).toEqual([]);
});

it('reaches nothing outside its folder', async () => {
  const { root, store } = folderStore();
  mkdirSync(root, { recursive: true });
  writeFileSync(join(root, '../secret'), 'secret');
  for (const path of [
    '../secret',
    'a/../../secret',
    '/etc/passwd',
    '',
    'a//b',
    '.',
    'a/.hidden',
    'a\\b',
    'a/%2e%2e/b',
    'a\0b',
  ])
    for (const use of [
      () => store.read(path),
      () => store.readRange(path, 0, 1),
      () => store.create(path, bytes('')),
      () => store.remove(path),
      () => listed(store, path),
    ])
      await expect((async () => use())(), path).rejects.toThrow('not a valid path in a lake');
});

it('takes no address that it would have to guess the meaning of', () => {
  for (const address of [
    'https://example.com/lake',
    'file://host/lake',
    'file:///lake?x=1',
    's3://user:secret@bucket/lake',
    's3://bucket/../lake#x',
    's3:///lake',
    's3://bucket:9000/lake',
    's3://bucket/lake?regoin=eu-west-1',
    's3://bucket/lake?region=',
    's3://bucket/lake?endpoint=https://user:secret@host',
  ])
    expect(() => openStore(address), address).toThrow(/^LAKE_URL (must|has)/);
  expect(() => openStore('s3://bucket/.lake')).toThrow('not a valid path');
});

it('proves that a store creates nothing twice', async () => {
  const { root, store } = folderStore();
  await store.probe();
  expect(readdirSync(root)).toEqual([]);
  const files = new Map<string, Buffer>();
  const forgetful = {
    read: async (path: string) => files.get(path),
    create: async (path: string, written: Buffer) => Boolean(files.set(path, written)),
    remove: async (path: string) => void files.delete(path),
  };
  await expect(probeCreate(forgetful)).rejects.toThrow('If-None-Match');
  expect(files.size).toBe(0);
  symlinkSync('/proc/1/nothing', join(root, 'gone'));
  const nowhere = openStore(pathToFileURL(join(root, 'gone')).href);
  await expect(nowhere.probe()).rejects.toThrow();
});

it.each<[string, (store: LakeStore, localFile: string) => Promise<unknown>]>([
  ['PUT', (store, localFile) => store.putFile('acme/x', localFile)],
  ['PUT if it is new', (store) => store.create('acme/x', bytes('whole'))],
  ['GET', (store, localFile) => store.getFile('acme/x', `${localFile}-copy`)],
  ['GET of a part', (store) => store.readRange('acme/x', 0, 10)],
  ['list', (store) => listed(store, 'acme')],
  ['DELETE', (store) => store.remove('acme/x')],
])('on S3, a %s that never ends fails after ten minutes', async (_, ask) => {
  for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) vi.stubEnv(name, 'test');
  onTestFinished(() => void vi.unstubAllEnvs());
  const reached = Promise.withResolvers<void>();
  const server = createServer((_, answer) => {
    // The rest of the body never follows.
    answer.writeHead(200, { 'content-length': 10 }).write('0');
    reached.resolve();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const ending = new AbortController();
  const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(ending.signal);
  onTestFinished(() => void timeout.mockRestore());
  const { port } = server.address() as AddressInfo;
  const store = openStore(`s3://bucket/data?endpoint=http://127.0.0.1:${port}&region=eu-west-1`);
  const localFile = join(temporaryFolder(), 'local');
  writeFileSync(localFile, 'whole');
  const asking = expect(ask(store, localFile)).rejects.toThrow();
  await reached.promise;
  expect(timeout.mock.calls).toEqual([[600_000]]);
  ending.abort(new DOMException('too slow', 'TimeoutError'));
  await asking;
  expect(existsSync(`${localFile}-copy`)).toBe(false);
});
