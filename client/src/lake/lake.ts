import type { Connection } from '../connection.ts';
import type { components } from '../generated/api.ts';
import { limits } from '../limits.ts';
import { listIn, readPages } from '../reading/read-pages.ts';
import type { PulledTable, PullOptions } from './pull-options.ts';

type Schemas = components['schemas'];

const parquet = 'application/vnd.apache.parquet';

/** The organisation's data as Delta Lake tables. */
export class Lake {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Lists the tables with their newest version, size and state. */
  async tables({ signal }: { readonly signal?: AbortSignal } = {}): Promise<Schemas['LakeTable'][]> {
    const answer = await this.#connection.request<object>({ path: '/v1/lake', signal });
    return listIn<Schemas['LakeTable']>(answer, 'tables');
  }

  /** Lists a table's files at its newest version. Fails with `lake_version_gone` if the table changes during the listing. */
  files(
    table: string,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): AsyncIterable<Schemas['LakeFile']> {
    const path = `/v1/lake/${encodeURIComponent(table)}/files`;
    return readPages(this.#connection, path, 'files', { limit: limits.lakeFilesPerPage }, signal);
  }

  /** Downloads a Parquet file as a stream of bytes. */
  async open(
    table: string,
    fileId: string,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<ReadableStream<Uint8Array>> {
    const path = `/v1/lake/${encodeURIComponent(table)}/files/${encodeURIComponent(fileId)}`;
    return (await this.#connection.stream(parquet, { path, signal })).body;
  }

  /**
   * Copies every table to a folder as a Delta Lake table. Works in Node, Bun and Deno. Downloads only missing files,
   * resumes interrupted downloads, verifies SHA-256 checksums, and removes files that are no longer part of a table.
   * Readers see a table's previous version until the new one is complete.
   */
  async pull(folder: string, options: PullOptions = {}): Promise<PulledTable[]> {
    // This module is imported on demand, so that browsers never load it.
    const { pullLake } = await import('./pull.ts');
    return pullLake(this.#connection, folder, options);
  }
}
