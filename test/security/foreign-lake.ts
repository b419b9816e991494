import { expect } from 'vitest';
import type { Api } from '../support/api.ts';
import { lakeFolder, startLakeProcess, untilInLake } from '../support/running-lake.ts';
import { lakeCursorAfter, signerOf } from '../support/signed-cursor.ts';
import type { Victims } from './two-organisations.ts';

/** Tries the lake's operations on another organisation's data, as an attacker would. */

export const lake = lakeFolder();

interface Sides {
  readonly victim: Api;
  readonly attacker: Api;
  readonly victimId: string;
  /** Sends a request as the attacker, and checks that the response does not contain any of the victim's data. */
  ask(question: { readonly path: string; readonly headers?: Record<string, string> }): Promise<string>;
}

interface Listed {
  readonly version: number;
  readonly files: readonly {
    readonly file_id: string;
    readonly sha256: string;
    readonly partition: object;
  }[];
}

const path = '/v1/lake/interactions/files';
const filesOf = async (api: Api): Promise<Listed> => (await api.get(path)).body;

/** Writes both organisations' data to the lake, and adds the victim's files to the values that must not leak. */
export async function withLakes(
  victims: Victims,
  databaseUrl: string,
  sides: Pick<Sides, 'victim' | 'attacker'>,
): Promise<Victims> {
  const writing = await startLakeProcess(databaseUrl, lake.url);
  await untilInLake(sides.victim, 2);
  await untilInLake(sides.attacker, 1);
  await writing.stop();
  const { version, files } = await filesOf(sides.victim);
  const sign = await signerOf(databaseUrl, 'victim', 'lake');
  const [file_id = ''] = files.map((file) => file.file_id);
  return {
    values: { ...victims.values, file_id },
    own: [...victims.own, ...files.flatMap((file) => [file.file_id, file.sha256])],
    signed: { ...victims.signed, 'list-lake-files': [lakeCursorAfter(sign, version, file_id), ''] },
  };
}

export function lakeRules(sides: () => Sides): Record<string, () => Promise<void>> {
  return {
    'get-lake': async () => {
      const { attacker, ask } = sides();
      expect(await ask({ path: '/v1/lake' })).toMatch(/^200 /);
      const { tables } = (await attacker.get('/v1/lake')).body;
      expect(tables).toContainEqual(expect.objectContaining({ table: 'interactions', rows: 1, files: 1 }));
    },
    'list-lake-files': async () => {
      const { attacker, ask } = sides();
      expect(await ask({ path })).toMatch(/^200 /);
      expect((await filesOf(attacker)).files).toHaveLength(1);
    },
    'download-lake-file': async () => {
      const { victim, attacker, victimId, ask } = sides();
      const [own] = (await filesOf(attacker)).files;
      expect(await ask({ path: `${path}/${own?.file_id}` })).toMatch(/^200 .*PAR1/s);
      const [{ file_id: name, partition } = { file_id: '', partition: {} }] = (await filesOf(victim)).files;
      const [day = ''] = Object.entries(partition).map((pair) => pair.join('='));
      const places = [
        name,
        `${name}.parquet`,
        `../../../${victimId}/interactions/${day}/${name}.parquet`,
        `../../${victimId}/interactions/files/${name}`,
        `../../../${victimId}/interactions/_delta_log/00000000000000000000.json`,
        `${day}/../../../${victimId}/interactions/${day}/${name}`,
      ];
      for (const place of places.flatMap((one) => [
        encodeURIComponent(one),
        encodeURIComponent(one).replaceAll('.', '%2e'),
        encodeURIComponent(encodeURIComponent(one)),
        one,
      ]))
        for (const headers of [{}, { range: 'bytes=0-3' }, { range: 'bytes=-4', 'if-range': `"${name}"` }])
          expect([place, await ask({ path: `${path}/${place}`, headers })]).toEqual([
            place,
            expect.stringMatching(/^404 /),
          ]);
      for (const table of [`..%2F${victimId}%2Finteractions`, `${victimId}%2Finteractions`, victimId])
        expect(await ask({ path: `/v1/lake/${table}/files` })).toMatch(/^404 /);
    },
  };
}
