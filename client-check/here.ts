import { fileURLToPath } from 'node:url';

/** Returns the path of a file in this folder. */
export const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
