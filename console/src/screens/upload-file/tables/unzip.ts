import { type UnzipOptions, type Unzipped, unzipSync } from 'fflate/browser';

/** The spreadsheet reader needs this function as well. */
export { strFromU8 } from 'fflate/browser';

type Callback = (error: unknown, files: Unzipped) => void;

/**
 * Replaces fflate's asynchronous `unzip` in the build. For every large entry, the original runs a script from a `blob:` URL,
 * which the content security policy forbids.
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
