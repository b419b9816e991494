import { expect, it } from 'vitest';
import { findTable } from '../../src/files/find-table.ts';
import { makeXlsx } from './make-xlsx.ts';
import { makeFile } from './support.ts';

async function found(text: string, name = 'shops.csv') {
  const { layout, header, reasons } = await findTable(makeFile(name, text), 'shops', undefined);
  return { layout, header, reasons };
}

it('a title of one cell, or above rows with other numbers of cells, is skipped', async () => {
  const table = 'Filiale;Anschrift;Land;Ort\n1;Hauptstr. 5, 1. OG, links;DE;Köln\n';
  const header = ['Filiale', 'Anschrift', 'Land', 'Ort'];
  const reason = (lines: number) =>
    `"skip_top": ${lines}, because the columns "Filiale","Anschrift","Land" are there`;
  for (const [title, lines] of [
    ['Filialen\n', 1],
    ['Filialen;;;\n', 1],
    ['Filialen, Stand 14.03.2026\n', 1],
    ['\nFilialen\n\nStand: 14.03.2026\n', 4],
  ] as const)
    expect(await found(title + table)).toEqual({
      layout: { skip_top: lines },
      header,
      reasons: [reason(lines)],
    });
});

it('a header is not taken for a title, whatever is in its rows', async () => {
  for (const text of [
    'Filiale;Anschrift\n1;Hauptstr. 5, 1. OG, links, 50667 Köln\n2;"a, b, c, d"\n',
    'Filiale,Anschrift\n1,a;b;c;d;e\n',
    'Filiale;Anschrift\n',
    // A column name is missing, so the rows have one cell more.
    'Filiale;Anschrift\n1;a;b\n2;a;b\n',
    'Kunden\n',
    'name;region\nx;y;z;1\nx;y;z;1\n',
  ])
    expect(await found(text)).toMatchObject({ layout: {}, header: text.split('\n')[0]?.split(/[;,]/) });
  expect((await found('{"Filiale": 1}\n', 'shops.ndjson')).layout).toEqual({});
});

it('the first sheet is taken unless another one has more columns that match fields', async () => {
  const layoutOf = async (first: string[][], others: Record<string, string[][]>) =>
    (await findTable(makeXlsx('shops.xlsx', first, { others }), 'shops', undefined)).layout;
  const shops = [
    ['name', 'region'],
    ['a', 'GB'],
  ];
  const german = [
    ['Filiale', 'Land'],
    ['1', 'DE'],
  ];
  expect(await layoutOf(shops, { Old: shops })).toEqual({});
  expect(await layoutOf([], { Data: german })).toEqual({ sheet: 2 });
  await expect(layoutOf([], { Data: [] })).rejects.toThrow('its first sheet is empty');
  expect(
    await layoutOf(german, {
      Notes: [
        ['x', 'y'],
        ['z', '1'],
      ],
    }),
  ).toEqual({});
  expect(await layoutOf([['Stand', 'heute']], { Notes: german, Data: [['Shops'], ...shops] })).toEqual({
    sheet: 'Data',
    skip_top: 1,
  });
});
