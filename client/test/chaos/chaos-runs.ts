import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../../test/fault/erasure-mixture/random.ts';
import type { Intake, IntakeError, NewInteraction } from '../../src/index.ts';
import { type ChaosProxy, withoutDuplicates } from './chaos-proxy.ts';

export type Reported = 'stored' | 'failed' | 'unknown';

/** What the client reported for each interaction, by its user_id. */
export type Report = Map<string, Reported>;

/** What happens to a command by chance, or for certain if the run says so. */
export type Event = 'started twice' | 'key rotated' | 'limited' | 'full';

export interface RunOf {
  readonly random: Random;
  readonly proxy: ChaosProxy;
  /** The folder of the built client. */
  readonly client: string;
  readonly library: { readonly Intake: typeof Intake };
  /** Two keys of the organisation. The second one replaces the first one. */
  readonly keys: readonly [string, string];
  /** The addresses of the processes, from the highest limits to the lowest. */
  readonly processes: readonly string[];
  readonly certain: readonly Event[];
  /** Revokes the first key. */
  revoke(): Promise<void>;
  readonly interactions: readonly NewInteraction[];
  /** Counts what happened, to show that the runs are as disturbed as they should be. */
  note(what: string): void;
}

/** Records interactions one by one, in two clients at once. */
export async function runRecord({ random, proxy, library, keys, interactions }: RunOf): Promise<Report> {
  const retryForMs = random.pick([1_500, 6_000, 20_000]);
  const clients = [0, 1].map(() => new library.Intake({ url: proxy.url, key: keys[0], retryForMs }));
  const report: Report = new Map();
  for (let at = 0; at < interactions.length; ) {
    const burst = interactions.slice(at, at + 1 + random.below(interactions.length / 3));
    at += burst.length;
    const intake = random.pick(clients);
    const recorded = Promise.all(
      burst.map((one) =>
        intake.record(one).then(
          () => report.set(nameOf(one), 'stored'),
          (error) => report.set(nameOf(one), reportOf(error)),
        ),
      ),
    );
    if (random.chance(0.7)) await recorded;
  }
  await Promise.all(clients.map((intake) => intake.close()));
  return report;
}

/** Uploads interactions under a name, is interrupted, and repeats the upload with more of them, perhaps twice at once. */
export async function runUpload(run: RunOf): Promise<Report> {
  const { random, proxy, library, keys, processes, interactions } = run;
  const report: Report = new Map();
  const name = random.chance(0.7) ? `named ${random.hex(16)}` : undefined;
  const upload = async (end: number, key: string, signal?: AbortSignal) => {
    const retryForMs = random.pick([1_500, 6_000, 20_000]);
    const intake = new library.Intake({ url: proxy.url, key, retryForMs });
    const sent = interactions.slice(0, end);
    // Until an outcome is reported, it is unknown, but what an earlier upload of the same name reported stays true.
    const settled: Report = new Map();
    let rest: Reported = 'unknown';
    try {
      for await (const step of intake.interactions.upload(sent, {
        ...(name && { name }),
        ...(signal && { signal }),
      })) {
        const failed = new Map(step.failed.map((each) => [each.index, each]));
        for (let at = settled.size; at < step.counts.received; at++)
          settled.set(
            nameOf(sent[at] as NewInteraction),
            failed.has(at) ? reportOfProblems(failed.get(at)?.problems ?? []) : 'stored',
          );
      }
    } catch (error) {
      rest = signal?.aborted ? 'unknown' : reportOf(error);
    }
    for (const one of sent) {
      const reported = settled.get(nameOf(one)) ?? rest;
      const before = report.get(nameOf(one));
      // `failed` is about this upload only: an earlier one may have stored it.
      if (before === undefined || reported === 'stored') report.set(nameOf(one), reported);
      else if (before === 'failed' && reported === 'unknown') report.set(nameOf(one), reported);
    }
  };
  const most = interactions.length;
  if (name === undefined) await upload(most, keys[0]);
  else {
    const first = 1 + random.below(most);
    await upload(
      first,
      keys[0],
      random.chance(0.5) ? AbortSignal.timeout(50 + random.below(1_500)) : undefined,
    );
    if (random.chance(0.4)) await Promise.all([upload(first, keys[0]), upload(most, keys[1])]);
    await upload(most, keys[1]);
    // Without disturbances, the upload finds out what is still unknown.
    if (random.chance(0.7)) {
      proxy.only = processes[0];
      await upload(most, keys[1]);
    }
  }
  return report;
}

/** Uploads files with the command, which is killed, cannot write, is started twice, or loses its key, and resumes. */
export async function runCommand(run: RunOf): Promise<Report> {
  const { random, interactions, proxy, certain } = run;
  const cwd = mkdtempSync(join(tmpdir(), 'intake-chaos-'));
  try {
    const isDivided = random.chance(0.5) && certain.length === 0;
    const half = isDivided ? Math.floor(interactions.length / 2) : interactions.length;
    put(join(cwd, 'interactions.csv'), interactions.slice(0, half));
    if (half < interactions.length) put(join(cwd, 'interactions-2.csv'), interactions.slice(half));
    // What else happens by chance could prevent what has to happen.
    const happens = (event: Event, chance: number) =>
      certain.length > 0 ? certain.includes(event) : random.chance(chance);
    let isDone = happens('started twice', 0.25) && (await runTwice(run, cwd));
    const isRotated = happens('key rotated', 0.3);
    // A duplicate could reach a process that does not know yet that the key is revoked.
    if (isRotated) proxy.allowed = withoutDuplicates;
    let key = run.keys[0];
    for (let tries = 0; tries < 12 && !isDone; tries++) {
      const ended = await runOnce(run, cwd, key, tries);
      isDone = ended.summary !== undefined;
      const isNow = certain.includes('key rotated') || random.chance(0.5);
      if (isRotated && !isDone && key === run.keys[0] && isNow) {
        run.note('key rotated');
        await run.revoke();
        key = run.keys[1];
      }
    }
    const failed = new Set<string>();
    // What follows the last line break was not written completely.
    for (const file of readdirSync(cwd).filter((name) => name.endsWith('.failed.ndjson')))
      for (const line of readFileSync(join(cwd, file), 'utf8').split('\n').slice(0, -1))
        failed.add(JSON.parse(line).user_id);
    return new Map(
      interactions.map((one) => {
        const name = nameOf(one);
        return [name, failed.has(name) ? 'failed' : isDone ? 'stored' : 'unknown'] as const;
      }),
    );
  } finally {
    rmSync(cwd, { recursive: true });
  }
}

type Fate = 'kill' | 'full' | 'limited' | 'none';

/** Runs the command once, as its messages advise. */
async function runOnce(run: RunOf, cwd: string, key: string, tries: number) {
  const { random, proxy, certain, processes } = run;
  const sure = certain.filter((event) => event === 'limited' || event === 'full')[tries];
  // The last tries are undisturbed, so that runs end with a result.
  const fate =
    sure ?? (tries < 5 ? random.pick(['kill', 'kill', 'full', 'limited', 'none'] as const) : 'none');
  // So many small requests fill the journal, and a process without limits can always finish the upload.
  if (sure || tries > 8) proxy.only = processes.at(sure === 'limited' ? -1 : 0);
  const isResumed = readdirSync(cwd).some((name) => name.endsWith('.journal'));
  const child = start(run, cwd, key, ['.', '--json', ...(isResumed ? ['--resume'] : [])], fate);
  if (fate === 'kill') {
    const journal = join(cwd, 'interactions.csv.journal');
    while (child.exitCode === null && !existsSync(journal)) await sleep(10);
    await sleep(random.below(1_200));
    if (child.kill('SIGKILL')) run.note('killed');
  }
  const ended = await child.ended;
  proxy.only = undefined;
  if (isResumed) run.note('resumed');
  if (/cannot be written/.test(ended.stderr)) run.note(`could not write (${fate})`);
  return ended;
}

/**
 * Starts two runs at once. Requests wait until the second one has ended, or has had the time to send its own. Returns whether
 * everything was reported.
 */
async function runTwice(run: RunOf, cwd: string): Promise<boolean> {
  const isCertain = run.certain.includes('started twice');
  const file = join(cwd, 'interactions.csv');
  const one = start(run, cwd, run.keys[0], ['.', '--json'], 'none');
  const two = start(run, cwd, run.keys[0], ['interactions.csv', '--json'], 'none');
  run.proxy.gate = Promise.race([one.ended, two.ended, sleep(20_000)]);
  if (!isCertain) await sleep(run.random.below(3_000));
  if (!isCertain && run.random.chance(0.5)) one.kill('SIGKILL');
  await Promise.race([one.ended, two.ended]);
  // The journals show how to continue after these runs.
  one.kill('SIGKILL');
  two.kill('SIGKILL');
  const all = await Promise.all([one.ended, two.ended]);
  if (all.some(({ stderr }) => stderr.includes('Another intake upload'))) run.note('second run refused');
  if (all[0].summary) return true;
  if (!all[1].summary) return false;
  for (const finished of [file, `${file}.journal`]) rmSync(finished, { force: true });
  return !existsSync(join(cwd, 'interactions-2.csv'));
}

interface Ended {
  readonly exitCode: number | null;
  readonly summary: object | undefined;
  readonly stderr: string;
}

function start(
  { client, proxy }: RunOf,
  cwd: string,
  key: string,
  args: readonly string[],
  fate: Fate,
): ChildProcess & { ended: Promise<Ended> } {
  const env = { PATH: process.env.PATH, INTAKE_URL: proxy.url, INTAKE_KEY: key };
  const stdout = fate === 'full' ? openSync('/dev/full', 'w') : ('pipe' as const);
  const command = [process.execPath, join(client, 'command/main.js'), 'upload', ...args];
  // A limit on the size of files has the same effect as a full disk: the journal cannot be continued.
  const [program, ...rest] =
    fate === 'limited' ? ['bash', '-c', 'ulimit -f 1; exec "$@"', 'bash', ...command] : command;
  const child = spawn(program as string, rest, { cwd, env, stdio: ['ignore', stdout, 'pipe'] });
  const ended = Promise.all([
    once(child, 'close'),
    child.stdout ? text(child.stdout) : '',
    text(child.stderr as NonNullable<ChildProcess['stderr']>),
  ]).then(([[exitCode], out, stderr]): Ended => ({ exitCode, summary: summaryIn(out), stderr }));
  return Object.assign(child, { ended }) as ChildProcess & { ended: Promise<Ended> };
}

/** Returns the summary if it was printed completely. */
function summaryIn(output: string): object | undefined {
  try {
    return JSON.parse(output);
  } catch {
    return undefined;
  }
}

function put(path: string, interactions: readonly NewInteraction[]): void {
  const names = ['interaction_type', 'item_type', 'item_id', 'user_id', 'event_timestamp'] as const;
  const rows = interactions.map((one) => `${names.map((name) => one[name]).join()}\n`);
  writeFileSync(path, `${names.join()}\n${rows.join('')}`);
}

function nameOf({ user_id }: NewInteraction): string {
  return user_id as string;
}

/** The old client has no `outcome`. It reports a failure with every error. */
function reportOf(error: unknown): Reported {
  return (error as IntakeError).outcome === 'unknown' ? 'unknown' : 'failed';
}

function reportOfProblems(problems: readonly { readonly code: string }[]): Reported {
  return problems.some(({ code }) => code === 'outcome_unknown') ? 'unknown' : 'failed';
}
