import { createWriteStream } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout } from 'node:timers/promises';
import type { ListObjectsV2CommandOutput, S3Client } from '@aws-sdk/client-s3';
import { checkedPath, probeCreate } from './store-paths.ts';

const attemptsMax = 4;
const conflictPauseMs = 200;
const connectTimeoutMs = 5_000;
/** The time after which an idle connection is closed. */
const silenceMs = 30_000;
/** The time after which a request fails with its retries and its body, because a slow connection is not idle. */
const requestMs = 600_000;

/** Loads the SDK on first use, because loading it takes longer than most commands run. */
const loadSdk = () => import('@aws-sdk/client-s3');
type Sdk = Awaited<ReturnType<typeof loadSdk>>;

/** A bucket on S3, or on a compatible store that supports `If-None-Match: *`. */
export class S3Store {
  readonly #bucket: string;
  readonly #prefix: string;
  readonly #endpoint: string | null;
  readonly #region: string | null;
  #connected: Promise<{ sdk: Sdk; client: S3Client }> | undefined;

  constructor({ hostname, pathname, searchParams }: URL) {
    this.#bucket = hostname;
    const prefix = pathname.replace(/^\/+|\/+$/g, '');
    this.#prefix = prefix === '' ? '' : `${checkedPath(prefix)}/`;
    this.#endpoint = searchParams.get('endpoint');
    this.#region = searchParams.get('region');
  }

  async read(path: string): Promise<Buffer | undefined> {
    const body = await this.#get(path).catch(unlessMissing);
    return body && Buffer.from(await body.transformToByteArray());
  }

  async readRange(path: string, from: number, to: number): Promise<Buffer | undefined> {
    if (to <= from) return Buffer.alloc(0);
    const body = await this.#get(path, `bytes=${from}-${to - 1}`).catch(unlessMissing);
    return body && Buffer.from(await body.transformToByteArray());
  }

  async create(path: string, bytes: Buffer): Promise<boolean> {
    for (let attempt = 1; ; attempt++)
      try {
        await this.#put(path, bytes, '*');
        return true;
      } catch (error) {
        const status = statusOf(error);
        // Another request for this path is still in progress.
        const isConflict = status === 409 && attempt < attemptsMax;
        if (isConflict) await setTimeout(conflictPauseMs * attempt);
        else {
          // The file may be ours, because the SDK retries a request whose response was lost. The response to the last
          // retry can be lost as well.
          const found = await this.read(path);
          if (found?.equals(bytes)) return true;
          if (found && status === 412) return false;
          throw error;
        }
      }
  }

  async putFile(path: string, localFile: string): Promise<void> {
    // The file is sent from memory, because a stream cannot be retried. The size of a table's files is limited.
    await this.#put(path, await readFile(localFile));
  }

  async getFile(path: string, localFile: string): Promise<void> {
    const body = await this.#get(path);
    try {
      const target = createWriteStream(localFile, { flags: 'wx', mode: 0o600 });
      await pipeline(body as unknown as Readable, target);
    } catch (error) {
      await rm(localFile, { force: true });
      throw error;
    }
  }

  async *list(folder: string): AsyncGenerator<{ path: string; modifiedAt: Date }> {
    const asked = { Prefix: `${this.#prefix}${checkedPath(folder)}/` };
    // Some tools create empty objects that stand for folders.
    for await (const { Contents = [] } of this.#pages(asked))
      for (const { Key = '', LastModified = new Date() } of Contents)
        if (!Key.endsWith('/')) yield { path: Key.slice(this.#prefix.length), modifiedAt: LastModified };
  }

  async folders(): Promise<string[]> {
    const names: string[] = [];
    for await (const { CommonPrefixes = [] } of this.#pages({ Prefix: this.#prefix, Delimiter: '/' }))
      for (const { Prefix = '' } of CommonPrefixes) names.push(Prefix.slice(this.#prefix.length, -1));
    return names;
  }

  async remove(path: string): Promise<void> {
    const { sdk, client } = await this.#connect();
    await client.send(
      new sdk.DeleteObjectCommand({ Bucket: this.#bucket, Key: this.#key(path) }),
      deadline(),
    );
  }

  probe(): Promise<void> {
    return probeCreate(this);
  }

  async #get(path: string, range?: string) {
    const { sdk, client } = await this.#connect();
    const asked = { Bucket: this.#bucket, Key: this.#key(path), ...(range && { Range: range }) };
    const { Body } = await client.send(new sdk.GetObjectCommand(asked), deadline());
    if (!Body) throw new Error('the store of the lake answered without a body');
    return Body;
  }

  async #put(path: string, bytes: Buffer, ifNoneMatch?: '*'): Promise<void> {
    const { sdk, client } = await this.#connect();
    const condition = ifNoneMatch && { IfNoneMatch: ifNoneMatch };
    const sent = { Bucket: this.#bucket, Key: this.#key(path), Body: bytes, ...condition };
    await client.send(new sdk.PutObjectCommand(sent), deadline());
  }

  /** Each page has its own deadline, because files may be removed between two pages. */
  async *#pages(asked: { Prefix: string; Delimiter?: string }): AsyncGenerator<ListObjectsV2CommandOutput> {
    const { sdk, client } = await this.#connect();
    let ContinuationToken: string | undefined;
    do {
      const command = new sdk.ListObjectsV2Command({ Bucket: this.#bucket, ...asked, ContinuationToken });
      const page = await client.send(command, deadline());
      yield page;
      ContinuationToken = page.NextContinuationToken;
    } while (ContinuationToken !== undefined);
  }

  #key(path: string): string {
    return this.#prefix + checkedPath(path);
  }

  #connect() {
    this.#connected ??= loadSdk().then((sdk) => {
      const client = new sdk.S3Client({
        maxAttempts: attemptsMax,
        requestHandler: { connectionTimeout: connectTimeoutMs, socketTimeout: silenceMs },
        ...(this.#region && { region: this.#region }),
        // Few other stores support a separate host name for each bucket.
        ...(this.#endpoint && { endpoint: this.#endpoint, forcePathStyle: true }),
      });
      return { sdk, client };
    });
    return this.#connected;
  }
}

function deadline(): { readonly abortSignal: AbortSignal } {
  return { abortSignal: AbortSignal.timeout(requestMs) };
}

function unlessMissing(error: unknown): undefined {
  const status = statusOf(error);
  if (status === 403)
    throw new Error('the bucket refuses access; reading needs s3:GetObject and s3:ListBucket', {
      cause: error,
    });
  if (status !== 404) throw error;
}

function statusOf(error: unknown): number | undefined {
  return (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;
}
