// @module-tag full

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { runCommand } from '../support/run-command.ts';

const page = readFileSync(fileURLToPath(new URL('../../docs/operating/scaling.md', import.meta.url)), 'utf8');
const plan = (text: string) => runCommand(['plan', ...text.split(/\s+/).filter((word) => word !== '')], {});
const size = '--records-per-second 500000 --interactions-per-second 100000 --organisations 100000';

const folder = mkdtempSync(join(tmpdir(), 'intake-plan-'));
afterAll(() => rmSync(folder, { recursive: true }));

const cost = { service: 40, postgres: 20, wal: 500, changes: 50 };
const costs = {
  measuredOn: 'a machine of ours',
  upload: { ...cost, service: 2_000 },
  record: { ...cost, service: 10 },
  interactions: [{ perSecond: 100, one: cost, many: cost }],
  indexing: { postgres: 5, wal: 300 },
  stored: { record: { table: 250, key: 50 }, interaction: { written: 250, indexes: 250 }, receipt: 1_000 },
  processBytes: 500e6,
  throughPooler: 1.2,
  onCitus: { record: 1.5, interaction: 2, interactionOfOne: 1.5 },
};

function changed(part: object): string {
  return JSON.stringify({ ...costs, ...part });
}

function costsFile(text: string): string {
  const file = join(folder, 'costs.json');
  writeFileSync(file, text);
  return file;
}

describe('plan', () => {
  it('answers for ten a second and for 500,000, with the stage, the requirements and the assumptions', async () => {
    const small = await plan(
      '--records-per-second 10 --interactions-per-second 10 --organisations 1 --retention 30',
    );
    expect(small).toMatchObject({ exitCode: 0, stderr: '' });
    expect(small.stdout).toMatch(/^Stage +one process: docs\/operating\/scaling\.md#one-process$/m);
    expect(small.stdout).toMatch(/^Service .*; 1 process/m);
    expect(small.stdout).toMatch(/^records +270 MB +8\.1 GB +30 days$/m);
    const large = await plan(`${size} --retention 30`);
    expect(large).toMatchObject({ exitCode: 0, stderr: '' });
    expect(large.stdout).toMatch(/^Stage +Citus: docs\/operating\/scaling\.md#citus$/m);
    expect(large.stdout).toMatch(
      /^PostgreSQL .*; a coordinator and \d+ workers because of the disk, \d+ shards$/m,
    );
    const [, low, high] = /^Service +([\d.]+) to ([\d.]+) cores; \d/m.exec(large.stdout) ?? [];
    expect(Number(high) / Number(low)).toBeGreaterThan(4);
    expect(large.stdout).toMatch(/^- the CPU is from 0\.5 to 2\.7 times those costs/m);
    expect(large.stdout).toMatch(
      /^- on Citus .* 5\.3 times for an interaction, 3\.4 times if all are of one/m,
    );
    for (const { stdout } of [small, large]) {
      expect(stdout).toMatch(/^Connections +(up to )?\d/m);
      expect(stdout).toMatch(/^Assumed\n- costs of this version, measured on /m);
      expect(stdout).toMatch(/^change log .* 8 days$/m);
      expect(stdout).toMatch(/^- not counted: .*readers of the change feed/m);
      expect(stdout).toMatch(/^- not counted: maintenance, .*report/m);
      expect(stdout).not.toMatch(/NaN|undefined|Infinity|\b1 days|\b1 organisations/);
    }
  });

  it.each([
    ['', /--records-per-second is missing; give .*, such as --records-per-second 2000$/],
    ['--records-per-second 1 --interactions-per-second 1 --organisations 1', /--retention is missing/],
    [`${size} --retention 30d`, /--retention must be a whole number from 1 to 36500/],
    [`${size} --retention 0`, /--retention must be a whole number from 1/],
    ['--records-per-second 500,000', /--records-per-second must be .* digits alone/],
    ['--records-per-second -1', /--records-per-second/],
    [`${size} --retention 30 --records-per-request 0`, /--records-per-request must be .* from 1 to/],
    [`${size} --retention 30 --costs`, /--costs/],
    ['--records 10', /--records/],
    ['10', /10/],
  ])('explains what is wrong with "%s"', async (text, said) => {
    const { exitCode, stdout, stderr } = await plan(text);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr.split('\n')[0]).toMatch(said);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it('plans with the costs of a file, and states their source', async () => {
    const file = costsFile(JSON.stringify(costs));
    const { exitCode, stdout, stderr } = await plan(`${size} --retention 30 --costs ${file}`);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toMatch(/^Assumed\n- costs from --costs, measured on a machine of ours$/m);
    // 500,000 records take 10 microseconds each, 500 uploads take 2 ms each, and 100,000 interactions take 40
    // microseconds each.
    expect(stdout).toMatch(/^Service +10 cores; 17 processes with 500 MB/m);
    expect(stdout).toMatch(/^records +13 TB/m);
    expect(stdout).not.toMatch(/ to [\d.]+ cores|the CPU is from/);
  });

  it.each([
    ['is not there', undefined, /cannot be read \(ENOENT\)/],
    ['is not JSON', 'upload: 5', /it is not JSON/],
    ['is a list', '[]', /it must be an object/],
    ['lacks a cost', changed({ upload: { service: 1, wal: 1, changes: 1 } }), /upload\.postgres is missing/],
    ['has a cost too many', changed({ extra: 1 }), /extra is not a cost, so remove it/],
    ['has a text for a number', changed({ processBytes: '5' }), /processBytes must be a number above 0/],
    ['has a cost of nothing', changed({ throughPooler: 0 }), /throughPooler must be a number above 0/],
    ['has no rates', changed({ interactions: [] }), /interactions must be a list with at least one entry/],
    [
      'has rates that do not rise',
      changed({ interactions: [...costs.interactions, ...costs.interactions] }),
      /interactions\[1\]\.perSecond must be above the previous one/,
    ],
    [
      'has a bad cost at a rate',
      changed({ interactions: [{ ...costs.interactions[0], many: 5 }] }),
      /interactions\[0\]\.many must be an object/,
    ],
    ['lacks the machine', changed({ measuredOn: 'a\nb' }), /measuredOn must be a line of text/],
  ])('explains what is wrong with a file of costs that %s', async (_, text, said) => {
    const file = text === undefined ? join(folder, 'missing.json') : costsFile(text);
    const { exitCode, stdout, stderr } = await plan(`${size} --retention 30 --costs ${file}`);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr.split('\n')[0]).toMatch(said);
    expect(stderr.split('\n')[0]).toContain(`npm run bench -- costs --save ${file} writes a complete file`);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it('has working examples in its help', async () => {
    const { stdout } = await plan('--help');
    const examples = [...stdout.replaceAll('\\\n', ' ').matchAll(/^ {2}intake-server plan (.*)$/gm)];
    expect(examples.length).toBeGreaterThan(0);
    const file = costsFile(JSON.stringify(costs));
    for (const [, args = ''] of examples)
      expect(await plan(args.replace('costs.json', file))).toMatchObject({ exitCode: 0, stderr: '' });
  });
});

describe('docs/operating/scaling.md', () => {
  it('shows what plan prints', async () => {
    const shown = [...page.matchAll(/^node dist\/main\.js plan (.*)\n```\n\n```text\n([^`]*)```$/gm)];
    expect(shown.length).toBeGreaterThan(0);
    for (const [, args = '', text] of shown) expect((await plan(args)).stdout).toBe(text);
  });

  it('has a table of sizes with the answers of plan', async () => {
    const rows = [...page.matchAll(/^\| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| (.*) \|$/gm)];
    expect(rows.length).toBeGreaterThan(3);
    for (const [, ...cells] of rows) {
      const [records, interactions, organisations, days, answer] = cells.map((cell) =>
        /^[\d,]+$/.test(cell) ? cell.replaceAll(',', '') : cell,
      );
      const { stdout } = await plan(
        `--records-per-second ${records} --interactions-per-second ${interactions} --organisations ${organisations} --retention ${days}`,
      );
      for (const part of answer?.split(' | ') ?? []) expect(stdout).toContain(part.replace(', ', '; '));
    }
  });

  it('has the section that plan mentions for each stage', () => {
    const headings = [...page.matchAll(/^## (.*)$/gm)].map(([, text = '']) =>
      text.toLowerCase().replaceAll(' ', '-'),
    );
    for (const name of ['one-process', 'many-processes', 'pooler', 'citus']) expect(headings).toContain(name);
  });
});
