import { type Disk, PullFolderError } from './disk.ts';
import type { RemoteTable } from './table-list.ts';

const engineInfo = 'intake pull';
const entry = '00000000000000000000.json';

/**
 * Returns a local copy's log, which is a single entry that describes the whole table. Each pull replaces this entry, because
 * earlier versions' files are deleted. If each pull added an entry, the log would grow forever.
 */
export function logOf({
  table,
  version,
  table_id: id,
  description,
  schema,
  partition_columns: partitionColumns,
  files,
}: RemoteTable): string {
  const nowMs = Date.now();
  const format = { provider: 'parquet', options: {} };
  const actions = [
    {
      commitInfo: {
        ...{ timestamp: nowMs, operation: 'PULL', engineInfo },
        operationParameters: { version: String(version) },
      },
    },
    { protocol: { minReaderVersion: 1, minWriterVersion: 2 } },
    {
      metaData: {
        ...{ id, name: table, description, format, schemaString: schema, partitionColumns },
        ...{ configuration: {}, createdTime: nowMs },
      },
    },
    ...files.map(({ path, partition, bytes, rows }) => ({
      add: {
        ...{ path, partitionValues: partition, size: bytes, modificationTime: nowMs, dataChange: true },
        stats: JSON.stringify({ numRecords: rows }),
      },
    })),
  ];
  return actions.map((action) => `${JSON.stringify(action)}\n`).join('');
}

/** Replaces the log atomically. */
export async function writeLog(disk: Disk, place: string, part: string, text: string): Promise<void> {
  const handle = await disk.openOwn(part);
  try {
    await handle.truncate(0);
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at < bytes.length; )
      at += (await handle.write(bytes, at, bytes.length - at, at)).bytesWritten;
    await handle.sync();
  } finally {
    await handle.close();
  }
  await disk.rename(part, `${place}/_delta_log/${entry}`);
}

/** Throws if the folder contains a table that another program has created or modified. */
export async function refuseForeignLog(disk: Disk, place: string): Promise<void> {
  const names = await disk.namesIn(`${place}/_delta_log`);
  const path = `${place}/_delta_log/${entry}`;
  const isOurs =
    names.length === 0 ||
    (names.length === 1 &&
      (await disk.sizeOf(path)) !== undefined &&
      (await disk.readFile(path, 'utf8')).split('\n', 1)[0]?.includes(`"engineInfo":"${engineInfo}"`));
  if (!isOurs)
    throw new PullFolderError(
      `${place} has a Delta Lake table that intake pull did not write, or that was changed. Pull into another folder.`,
    );
}
