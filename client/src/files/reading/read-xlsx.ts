import { readSheet } from 'read-excel-file/node';
import type { UploadType } from '../../generated/resources.ts';
import type { FileOptions, OpenedTable } from '../../parsing/opened-file.ts';
import { cellReading, checkSheetSize, explainSheet, openSheet } from '../../parsing/tables/sheet.ts';
import { watchFile } from './watch-file.ts';

/** Opens a spreadsheet's first sheet. */
export async function openXlsx(path: string, type: UploadType, options: FileOptions): Promise<OpenedTable> {
  const { bytes, check } = await watchFile(path);
  checkSheetSize(bytes);
  const rows = await readSheet(path, cellReading(options)).catch(explainSheet);
  await check(true);
  return openSheet(rows, bytes, type, options);
}
