import type { LakeStore } from './lake-store.ts';

/** Returns a store that changes no file unless the check succeeds first. */
export function heldStore(store: LakeStore, check: () => Promise<void>): LakeStore {
  const whileHeld =
    <Given extends unknown[], T>(change: (...given: Given) => Promise<T>) =>
    async (...given: Given) => {
      await check();
      return change(...given);
    };
  return {
    read: (path) => store.read(path),
    readRange: (path, from, to) => store.readRange(path, from, to),
    create: whileHeld((path: string, bytes: Buffer) => store.create(path, bytes)),
    putFile: whileHeld((path: string, localFile: string) => store.putFile(path, localFile)),
    getFile: (path, localFile) => store.getFile(path, localFile),
    list: (folder) => store.list(folder),
    remove: whileHeld((path: string) => store.remove(path)),
    probe: () => store.probe(),
  };
}
