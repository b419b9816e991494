import { createHash, randomUUID } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const day = '2026-03-14';
const schemaString = JSON.stringify({
  type: 'struct',
  fields: ['interaction_id', 'received_on'].map((name) => ({
    name,
    type: name === 'received_on' ? 'date' : 'string',
    nullable: true,
    metadata: {},
  })),
});

/** A handwritten lake: a table's log, and files with arbitrary bytes. */
export class MadeLake {
  readonly #folder: string;
  #version = -1;

  constructor(root: string, organisationId: string, table = 'interactions') {
    this.#folder = join(root, organisationId, table);
    mkdirSync(join(this.#folder, '_delta_log'), { recursive: true });
    mkdirSync(join(this.#folder, `received_on=${day}`));
    const metaData = {
      ...{ id: randomUUID(), name: table, description: 'made', schemaString, configuration: {} },
      ...{ format: { provider: 'parquet', options: {} }, partitionColumns: ['received_on'], createdTime: 0 },
    };
    this.#write([{ protocol: { minReaderVersion: 1, minWriterVersion: 2 } }, { metaData }]);
  }

  /** Commits a new version. Returns the names of the added files. */
  commit(add: readonly Buffer[], remove: readonly string[] = []): string[] {
    const added = add.map((content) => {
      const name = randomUUID();
      writeFileSync(this.fileOf(name), content);
      const sha256 = createHash('sha256').update(content).digest('hex');
      const stats = JSON.stringify({ numRecords: 1, minValues: {}, maxValues: {} });
      const sizes = { size: content.length, modificationTime: 0, dataChange: true, stats };
      return {
        name,
        add: { path: pathOf(name), partitionValues: { received_on: day }, ...sizes, tags: { sha256 } },
      };
    });
    const removed = remove.map((name) => ({
      remove: { path: pathOf(name), deletionTimestamp: 0, dataChange: true },
    }));
    this.#write([...removed, ...added.map(({ add }) => ({ add }))]);
    return added.map(({ name }) => name);
  }

  /** Deletes a file, as vacuum does. */
  delete(name: string): void {
    rmSync(this.fileOf(name));
  }

  fileOf(name: string): string {
    return join(this.#folder, pathOf(name));
  }

  #write(actions: readonly object[]): void {
    const name = `${String(++this.#version).padStart(20, '0')}.json`;
    const lines = actions.map((action) => `${JSON.stringify(action)}\n`);
    writeFileSync(join(this.#folder, '_delta_log', name), lines.join(''));
  }
}

function pathOf(name: string): string {
  return `received_on=${day}/${name}.parquet`;
}
