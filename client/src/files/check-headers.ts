import type { ResourceType } from '../generated/resources.ts';
import { FileError } from './file-error.ts';
import { type FileOptions, type OpenedFile, openFile } from './read-file.ts';

/**
 * Opens every file and throws one error for all that cannot be read, so that nobody learns of a second wrong header
 * when half of the files are uploaded. Returns standard input, which can be opened only once.
 */
export async function checkHeaders(
  files: readonly { readonly path: string; readonly type: ResourceType }[],
  optionsOf: (type: ResourceType) => FileOptions,
): Promise<OpenedFile | undefined> {
  const complaints: string[] = [];
  let standardInput: OpenedFile | undefined;
  for (const { path, type } of files) {
    try {
      const file = await openFile(path, { ...optionsOf(type), type });
      if (path === '-') standardInput = file;
      else await file.close();
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      complaints.push(...error.lines);
    }
  }
  if (complaints.length > 0) throw new FileError(...complaints);
  return standardInput;
}
