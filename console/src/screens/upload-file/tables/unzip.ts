import { type UnzipOptions, type Unzipped, unzipSync } from 'fflate/browser';

/** The other function that the reader of spreadsheets uses. */
export { strFromU8 } from 'fflate/browser';

type Callback = (error: unknown, files: Unzipped) => void;

/**
 * Replaces the asynchronous `unzip` of fflate in the build. That one runs a script from a `blob:` address for every large
 * entry, which the content security policy forbids.
 */
export function unzip(archive: Uint8Array, options: UnzipOptions | Callback, callback?: Callback): void {
  const done = typeof options === 'function' ? options : callback;
  let files: Unzipped = {};
  let failure: unknown = null;
  try {
    files = unzipSync(archive, typeof options === 'function' ? {} : options);
  } catch (error) {
    failure = error;
  }
  done?.(failure, files);
}
