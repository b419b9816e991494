import readSheets from 'read-excel-file/universal';
import type { UploadType } from '../../../../../client/src/generated/resources.ts';
import type { FileOptions, OpenedTable } from '../../../../../client/src/parsing/opened-file.ts';
import {
  cellReading,
  checkSheetSize,
  explainSheet,
  openSheet,
} from '../../../../../client/src/parsing/tables/sheet.ts';

/** Opens a sheet of a spreadsheet. */
export async function openSheetFile(
  file: File,
  type: UploadType,
  options: FileOptions,
): Promise<OpenedTable> {
  checkSheetSize(file.size);
  return openSheet(
    await readSheets(file, cellReading(options)).catch(explainSheet),
    file.size,
    type,
    options,
  );
}
