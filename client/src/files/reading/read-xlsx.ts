import { readFile } from 'node:fs/promises';
import { unzipSync, zipSync } from 'fflate';
import readSheets from 'read-excel-file/node';
import type { UploadType } from '../../generated/resources.ts';
import type { FileOptions, OpenedTable } from '../../parsing/opened-file.ts';
import { cellReading, checkSheetSize, explainSheet, openSheet } from '../../parsing/tables/sheet.ts';
import { showErrors } from '../../parsing/tables/sheet-errors.ts';
import { watchFile } from './watch-file.ts';

/** Opens a sheet of a spreadsheet. All sheets are read, because only their rows show which of them have data. */
export async function openXlsx(path: string, type: UploadType, options: FileOptions): Promise<OpenedTable> {
  const { bytes, check } = await watchFile(path);
  checkSheetSize(bytes);
  const content = showErrors(await readFile(path), { unzipSync, zipSync });
  const sheets = await readSheets(Buffer.from(content), cellReading(options)).catch(explainSheet);
  await check(true);
  return openSheet(sheets, bytes, type, options);
}
