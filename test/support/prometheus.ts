import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './free-port.ts';

const programs = {
  prometheus: '/usr/bin/prometheus',
  nodeExporter: '/usr/bin/prometheus-node-exporter',
  postgresExporter: '/usr/bin/prometheus-postgres-exporter',
};
export const prometheusIsInstalled = Object.values(programs).every((program) => existsSync(program));

/** A separate process that serves HTTP on localhost. */
export interface Exporter {
  /** The host and port, as a Prometheus target. */
  readonly target: string;
  stop(): Promise<void>;
}

export interface Prometheus extends Exporter {
  /** Returns the labels and the current value of each series that an expression returns. */
  query(expression: string): Promise<{ labels: Record<string, string>; value: number }[]>;
  /** Returns the firing alerts, by name, each with its chore, code, part or work label. */
  firing(): Promise<string[]>;
  /** Returns the alerts that have fired within this many seconds, even if they no longer fire. */
  fired(seconds: number): Promise<string[]>;
}

/** Starts Prometheus. By default, it scrapes these targets, by job name, and evaluates the rules every second. */
export async function startPrometheus(
  jobs: Readonly<Record<string, readonly string[]>>,
  rules = '',
  everySeconds = 1,
): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'intake-prometheus-'));
  writeFileSync(join(folder, 'rules.yml'), rules);
  const scrape_configs = Object.entries(jobs).map(([job_name, targets]) => ({
    job_name,
    static_configs: [{ targets }],
  }));
  const every = `${everySeconds}s`;
  const global = {
    scrape_interval: every,
    scrape_timeout: `${Math.min(10, everySeconds)}s`,
    evaluation_interval: every,
  };
  // JSON is also valid YAML.
  writeFileSync(
    join(folder, 'prometheus.yml'),
    JSON.stringify({ global, rule_files: ['rules.yml'], scrape_configs }),
  );
  const target = `127.0.0.1:${await freePort()}`;
  const flags = [`--config.file=${join(folder, 'prometheus.yml')}`, `--storage.tsdb.path=${folder}/data`];
  const own = await start(programs.prometheus, [...flags, `--web.listen-address=${target}`], target);
  const ask = async (path: string) => {
    const response = await fetch(`http://${target}/api/v1/${path}`);
    const { data, error } = (await response.json()) as { data: Answered; error?: string };
    if (error !== undefined) throw new Error(`${decodeURIComponent(path)}: ${error}`);
    return data;
  };
  const query: Prometheus['query'] = async (expression) => {
    const { result = [] } = await ask(`query?query=${encodeURIComponent(expression)}`);
    return result.map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }));
  };
  return {
    target,
    query,
    async firing() {
      const { alerts = [] } = await ask('alerts');
      return namesOf(alerts.filter(({ state }) => state === 'firing'));
    },
    async fired(seconds) {
      return namesOf(await query(`count_over_time(ALERTS{alertstate="firing"}[${seconds}s])`));
    },
    async stop() {
      await own.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function namesOf(alerts: readonly { labels: Record<string, string> }[]): string[] {
  const named = alerts.map(({ labels }) =>
    [labels.alertname, labels.chore ?? labels.code ?? labels.part ?? labels.work].filter(Boolean).join(' '),
  );
  return [...new Set(named)].sort();
}

interface Answered {
  readonly result?: readonly { metric: Record<string, string>; value: readonly [number, string] }[];
  readonly alerts?: readonly { state: string; labels: Record<string, string> }[];
}

/** Starts an exporter that reports on the machine's file systems. */
export async function startNodeExporter(): Promise<Exporter> {
  const target = `127.0.0.1:${await freePort()}`;
  const flags = ['--collector.disable-defaults', '--collector.filesystem'];
  return start(programs.nodeExporter, [...flags, `--web.listen-address=${target}`], target);
}

export async function startPostgresExporter(databaseUrl: string): Promise<Exporter> {
  const target = `127.0.0.1:${await freePort()}`;
  const env = { DATA_SOURCE_NAME: `${databaseUrl}?sslmode=disable` };
  return start(programs.postgresExporter, [`--web.listen-address=${target}`], target, env);
}

async function start(
  program: string,
  flags: readonly string[],
  target: string,
  env: Record<string, string> = {},
): Promise<Exporter> {
  const child = spawn(program, flags, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.on('data', (said) => {
    log = `${log}${said}`.slice(-4_000);
  });
  for (let attempt = 0; !(await answers(target)); attempt++) {
    if (attempt === 4_800 || child.exitCode !== null) {
      await end(child);
      throw new Error(`${program} did not start:\n${log}`);
    }
    await sleep(50);
  }
  return { target, stop: () => end(child) };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

async function answers(target: string): Promise<boolean> {
  return fetch(`http://${target}/-/ready`).then(
    ({ status }) => status === 200 || status === 404,
    () => false,
  );
}
