import { LakeTaken } from '../lake-progress.ts';
import type { LakeStore } from './lake-store.ts';

/**
 * Returns a store that changes files only while this process holds the organisation's slot. A process that has lost its
 * slot must not store anything, because another process may be removing the lake.
 */
export function heldStore(store: LakeStore, isHeld: () => boolean): LakeStore {
  const whileHeld =
    <Given extends unknown[], T>(change: (...given: Given) => Promise<T>) =>
    async (...given: Given) => {
      if (!isHeld()) throw new LakeTaken();
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
