import { uncalculated } from '../values/formula-error.ts';

/** The functions of fflate, whose builds for Node and for browsers differ. */
interface Zip {
  unzipSync(
    bytes: Uint8Array,
    options?: { filter: (entry: { readonly name: string }) => boolean },
  ): Record<string, Uint8Array>;
  zipSync(entries: Record<string, Uint8Array>, options: { level: 0 }): Uint8Array;
}

const sheetPart = /^\/?xl\/worksheets\/[^/]+\.xml$/i;

/** Returns a spreadsheet in which the errors of formulas are texts. Without errors, returns it unchanged. */
export function showErrors(bytes: Uint8Array, { unzipSync, zipSync }: Zip): Uint8Array {
  try {
    const parts = Object.entries(unzipSync(bytes, { filter: ({ name }) => sheetPart.test(name) }));
    const changed = parts.flatMap(([name, part]) => {
      const shown = withErrors(part);
      return shown === undefined ? [] : [[name, shown] as const];
    });
    if (changed.length === 0) return bytes;
    return zipSync({ ...unzipSync(bytes), ...Object.fromEntries(changed) }, { level: 0 });
  } catch {
    // The library explains why it cannot be read.
    return bytes;
  }
}

/**
 * Turns the errors of formulas into texts, because the library reads them as empty cells, which would clear stored values. Returns
 * undefined if nothing has changed.
 */
function withErrors(part: Uint8Array): Uint8Array | undefined {
  if (!includes(part, 't="e"') && !includes(part, "t='e'") && !includes(part, '<f')) return undefined;
  const xml = new TextDecoder().decode(part);
  const changed = xml
    .replace(/(<c\s[^>]*?\bt=)(?:"e"|'e')/g, '$1"str"')
    .replace(cellWithFormula, (cell, attributes: string, value: string | undefined) => {
      const isText = /\bt=["']str["']/.test(attributes);
      if (value !== undefined && (isText || !emptyValue.test(value))) return cell;
      return `<c${attributes.replace(/\st=("[^"]*"|'[^']*')/, '')} t="str"><v>${uncalculated}</v></c>`;
    });
  return changed === xml ? undefined : new TextEncoder().encode(changed);
}

const cellWithFormula =
  /<c(\s[^>]*)>\s*<f(?:\s[^>]*)?(?:\/>|>[^<]*<\/f>)\s*(<v[^>]*\/>|<v[^>]*>[^<]*<\/v>)?\s*<\/c>/g;
const emptyValue = /^<v[^>]*(\/>|><\/v>)$/;

function includes(bytes: Uint8Array, text: string): boolean {
  const wanted = new TextEncoder().encode(text);
  for (let at = bytes.indexOf(wanted[0] as number); at >= 0; at = bytes.indexOf(wanted[0] as number, at + 1))
    if (wanted.every((byte, index) => bytes[at + index] === byte)) return true;
  return false;
}
