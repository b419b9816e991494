import { lakeUrlProblems } from '../../config.ts';
import { FileStore } from './file-store.ts';
import { S3Store } from './s3-store.ts';

/** File storage in a folder or a bucket. Paths are relative, for example `acme/interactions/_delta_log/0.json`. */
export interface LakeStore {
  read(path: string): Promise<Buffer | undefined>;
  /** Reads the bytes from `from` (inclusive) to `to` (exclusive). Returns undefined if the file does not exist. */
  readRange(path: string, from: number, to: number): Promise<Buffer | undefined>;
  /** Creates a file atomically. Returns false if it already exists with different bytes. */
  create(path: string, bytes: Buffer): Promise<boolean>;
  /** Writes a file atomically, and replaces any existing one. */
  putFile(path: string, localFile: string): Promise<void>;
  /** Copies an immutable file to a local path, which must not exist. */
  getFile(path: string, localFile: string): Promise<void>;
  /** Lists every file below a folder, ordered by path. */
  list(folder: string): AsyncIterable<StoredFile>;
  /** Returns the names of the folders at the top. */
  folders(): Promise<string[]>;
  remove(path: string): Promise<void>;
  /** Throws unless the store is writable and `create` never replaces a file. */
  probe(): Promise<void>;
}

export interface StoredFile {
  readonly path: string;
  readonly modifiedAt: Date;
}

/**
 * Opens `file:///folder` or `s3://bucket/prefix`. For stores other than Amazon's, the S3 URL ends in
 * `?endpoint=https://…&region=…`. Credentials come from the AWS SDK's usual sources and never from the URL, because the
 * URL is logged.
 */
export function openStore(address: string): LakeStore {
  const [problem] = lakeUrlProblems(address);
  if (problem !== undefined) throw new Error(problem);
  const url = new URL(address);
  return url.protocol === 'file:' ? new FileStore(url) : new S3Store(url);
}
