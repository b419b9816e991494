import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

/** Writes a .br and a .gz file next to each text file of the build, so that the server never has to compress them itself. */
const folder = fileURLToPath(new URL('../../dist/console/', import.meta.url));
const files = globSync('**/*.{js,css,html,svg}', { cwd: folder });

let scriptBytes = 0;
for (const file of files) {
  const text = readFileSync(folder + file);
  const brotli = brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  writeFileSync(`${folder}${file}.br`, brotli);
  writeFileSync(`${folder}${file}.gz`, gzipSync(text, { level: 9 }));
  if (file.endsWith('.js')) scriptBytes += brotli.length;
}

/** Includes the parts that are loaded when a person opens a file or a chart. They take a third of it. */
const scriptBytesMax = 260_000;
if (scriptBytes > scriptBytesMax)
  throw new Error(`The scripts take ${scriptBytes} bytes compressed, more than ${scriptBytesMax}.`);
