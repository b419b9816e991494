import { strToU8, zipSync } from 'fflate';
import { makeFile } from './support.ts';

export interface Cell {
  readonly number: string;
  readonly isDate?: boolean;
}

/** A cell as XML, from its opening tag: `t="e"><v>#REF!</v>`. */
interface RawCell {
  readonly xml: string;
}

type Rows = readonly (readonly (string | boolean | Cell | RawCell | null)[])[];

/** Creates a spreadsheet like the ones that Excel writes, with strings in a shared table and dates as styled numbers. */
export function makeXlsx(
  name: string,
  rows: Rows,
  {
    is1904 = false,
    others = {},
    hasChart = false,
  }: { readonly is1904?: boolean; readonly others?: Record<string, Rows>; readonly hasChart?: boolean } = {},
): string {
  const texts: string[] = [];
  const cellOf = (cell: string | boolean | Cell | RawCell | null, at: string) => {
    if (cell === null) return '';
    if (typeof cell === 'object' && 'xml' in cell) return `<c r="${at}" ${cell.xml}</c>`;
    if (typeof cell === 'boolean') return `<c r="${at}" t="b"><v>${cell ? 1 : 0}</v></c>`;
    if (typeof cell === 'string') return `<c r="${at}" t="s"><v>${texts.push(cell) - 1}</v></c>`;
    return `<c r="${at}"${cell.isDate ? ' s="1"' : ''}><v>${cell.number}</v></c>`;
  };
  const xmlOf = (sheet: Rows) =>
    sheet.map((row, at) => {
      const cells = row.map((cell, index) => cellOf(cell, `${String.fromCharCode(65 + index)}${at + 1}`));
      return `<row r="${at + 1}">${cells.join('')}</row>`;
    });
  const sheets = Object.entries({ Sheet1: rows, ...others }).map(([sheet, data], at) => ({
    number: at + 1,
    sheet,
    data: xmlOf(data).join(''),
  }));
  const main = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';
  const relations = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
  const parts = {
    'xl/workbook.xml': `<workbook xmlns="${main}" xmlns:r="${relations}"><workbookPr date1904="${is1904 ? 1 : 0}"/><sheets>${sheets.map(({ sheet, number }) => `<sheet name="${sheet}" sheetId="${number}" r:id="rIdS${number}"/>`).join('')}${hasChart ? '<sheet name="Chart" sheetId="99" r:id="rIdC"/>' : ''}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${sheets.map(({ number }) => `<Relationship Id="rIdS${number}" Type="${relations}/worksheet" Target="worksheets/sheet${number}.xml"/>`).join('')}<Relationship Id="rId2" Type="${relations}/styles" Target="styles.xml"/><Relationship Id="rId3" Type="${relations}/sharedStrings" Target="sharedStrings.xml"/></Relationships>`,
    'xl/styles.xml': `<styleSheet xmlns="${main}"><cellStyleXfs count="1"><xf numFmtId="0"/></cellStyleXfs><cellXfs count="2"><xf numFmtId="0" xfId="0"/><xf numFmtId="22" xfId="0" applyNumberFormat="1"/></cellXfs></styleSheet>`,
    ...Object.fromEntries(
      sheets.map(({ number, data }) => [
        `xl/worksheets/sheet${number}.xml`,
        `<worksheet xmlns="${main}"><sheetData>${data}</sheetData></worksheet>`,
      ]),
    ),
    'xl/sharedStrings.xml': `<sst xmlns="${main}">${texts.map((text) => `<si><t>${text}</t></si>`).join('')}</sst>`,
  };
  const xml = (text: string) => strToU8(`<?xml version="1.0" encoding="UTF-8"?>${text}`);
  const zipped = Object.entries(parts).map(([path, text]) => [path, xml(text)] as const);
  return makeFile(name, zipSync(Object.fromEntries(zipped)));
}
