import { unzipSync, zipSync } from 'fflate/browser';
import readSheets from 'read-excel-file/universal';
import type { UploadType } from '../../../../../client/src/generated/resources.ts';
import type { FileOptions, OpenedTable } from '../../../../../client/src/parsing/opened-file.ts';
import {
  cellReading,
  checkSheetSize,
  explainSheet,
  openSheet,
} from '../../../../../client/src/parsing/tables/sheet.ts';
import { showErrors } from '../../../../../client/src/parsing/tables/sheet-errors.ts';

/** Opens a sheet of a spreadsheet. */
export async function openSheetFile(
  file: File,
  type: UploadType,
  options: FileOptions,
): Promise<OpenedTable> {
  checkSheetSize(file.size);
  const content = showErrors(new Uint8Array(await file.arrayBuffer()), { unzipSync, zipSync });
  return openSheet(
    await readSheets(new Blob([new Uint8Array(content)]), cellReading(options)).catch(explainSheet),
    file.size,
    type,
    options,
  );
}
