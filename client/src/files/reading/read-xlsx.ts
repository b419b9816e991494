import { readSheet } from 'read-excel-file/node';
import type { UploadType } from '../../generated/resources.ts';
import type { FileOptions, OpenedTable } from '../../parsing/opened-file.ts';
import { cellReading, checkSheetSize, explainSheet, openSheet } from '../../parsing/tables/sheet.ts';
import { sizeOf } from './open-text.ts';

/** Opens a spreadsheet's first sheet. */
export async function openXlsx(path: string, type: UploadType, options: FileOptions): Promise<OpenedTable> {
  const bytes = await sizeOf(path);
  checkSheetSize(bytes);
  return openSheet(await readSheet(path, cellReading(options)).catch(explainSheet), bytes, type, options);
}
