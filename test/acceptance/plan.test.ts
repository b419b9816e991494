import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runCommand } from '../support/run-command.ts';

const page = readFileSync(fileURLToPath(new URL('../../docs/scaling.md', import.meta.url)), 'utf8');
const plan = (text: string) => runCommand(['plan', ...text.split(/\s+/).filter((word) => word !== '')], {});
const size = '--records-per-second 500000 --interactions-per-second 100000 --organisations 100000';

describe('plan', () => {
  it('answers for ten a second and for 500,000, with the stage, the needs and what it assumes', async () => {
    const small = await plan(
      '--records-per-second 10 --interactions-per-second 10 --organisations 1 --retention 30',
    );
    expect(small).toMatchObject({ exitCode: 0, stderr: '' });
    expect(small.stdout).toMatch(/^Stage +one process: docs\/scaling\.md#one-process$/m);
    expect(small.stdout).toMatch(/^Service .*; 1 process/m);
    expect(small.stdout).toMatch(/^records +270 MB +8\.1 GB +30 days$/m);
    const large = await plan(`${size} --retention 30`);
    expect(large).toMatchObject({ exitCode: 0, stderr: '' });
    expect(large.stdout).toMatch(/^Stage +Citus: docs\/scaling\.md#citus$/m);
    expect(large.stdout).toMatch(
      /^PostgreSQL .*; a coordinator and \d+ workers because of the disk, \d+ shards$/m,
    );
    for (const { stdout } of [small, large]) {
      expect(stdout).toMatch(/^Connections +(up to )?\d/m);
      expect(stdout).toMatch(/^Assumed\n- CPU as measured on /m);
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
    ['--records 10', /--records/],
    ['10', /10/],
  ])('says what is wrong with "%s"', async (text, said) => {
    const { exitCode, stdout, stderr } = await plan(text);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr.split('\n')[0]).toMatch(said);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it('has examples in its help that run', async () => {
    const { stdout } = await plan('--help');
    const examples = [...stdout.replaceAll('\\\n', ' ').matchAll(/^ {2}intake-server plan (.*)$/gm)];
    expect(examples.length).toBeGreaterThan(0);
    for (const [, args = ''] of examples) expect(await plan(args)).toMatchObject({ exitCode: 0, stderr: '' });
  });
});

describe('docs/scaling.md', () => {
  it('shows what plan prints', async () => {
    const [, args, shown] = /^node dist\/main\.js plan (.*)\n```\n\n```text\n([^`]*)```$/m.exec(page) ?? [];
    expect((await plan(args ?? '')).stdout).toBe(shown);
  });

  it('has the section that plan names for each stage', () => {
    const headings = [...page.matchAll(/^## (.*)$/gm)].map(([, text = '']) =>
      text.toLowerCase().replaceAll(' ', '-'),
    );
    for (const name of ['one-process', 'many-processes', 'pooler', 'citus']) expect(headings).toContain(name);
  });
});
