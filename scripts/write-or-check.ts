import { readFileSync, writeFileSync } from 'node:fs';

/** Writes a generated file. With --check, it only reports whether the file is up to date. */
export function writeOrCheck(name: string, generated: string, source: string): void {
  const file = new URL(`../${name}`, import.meta.url);
  if (!process.argv.includes('--check')) writeFileSync(file, generated);
  else if (readFileSync(file, 'utf8') !== generated) {
    console.error(`${name} is not what ${source}; run npm run generate and commit it`);
    process.exitCode = 1;
  }
}
