import { fileURLToPath } from 'node:url';

/** The path of a file from this folder. */
export const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
