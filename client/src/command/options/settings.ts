import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { Connection, onFirstLimit } from '../../connection.ts';
import { Intake, type IntakeOptions } from '../../index.ts';
import { warn } from '../terminal/terminal.ts';
import { UsageError } from './command.ts';

export interface Settings {
  readonly url: string;
  readonly key: string;
  /** Describes where the settings come from, for use in messages. */
  readonly source: string;
}

/** Returns the path of the settings file in the user's configuration folder, which depends on the platform. */
function settingsFile(): string {
  const { XDG_CONFIG_HOME, APPDATA } = process.env;
  const folder =
    process.platform === 'win32' && APPDATA ? APPDATA : XDG_CONFIG_HOME || join(homedir(), '.config');
  return join(folder, 'intake', 'config.json');
}

/** Reads the settings. INTAKE_URL and INTAKE_KEY override the values stored by `intake login`. */
export async function readSettings(): Promise<Settings> {
  const { INTAKE_URL, INTAKE_KEY } = process.env;
  const file = settingsFile();
  const kept = INTAKE_URL && INTAKE_KEY ? {} : await readKept(file);
  const url = INTAKE_URL || kept.url;
  const key = INTAKE_KEY || kept.key;
  if (!url || !key) {
    throw new UsageError(
      `The ${url ? 'key' : 'address'} of the service is not set. Run intake login, or set INTAKE_URL and INTAKE_KEY.`,
    );
  }
  const source = INTAKE_URL && INTAKE_KEY ? 'INTAKE_URL and INTAKE_KEY' : file;
  return { url, key, source };
}

async function readKept(file: string): Promise<{ url?: string; key?: string }> {
  try {
    return JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}. Run intake login again.`);
  }
}

export async function keepSettings(url: string, key: string): Promise<string> {
  const file = settingsFile();
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  // Write a new file and rename it, because overwriting an existing file would keep the old file's mode.
  const next = `${file}.${process.pid}`;
  await writeFile(next, `${JSON.stringify({ url, key }, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
  await rename(next, file);
  return file;
}

/** Returns a key's public part. */
export function keyIdOf(key: string): string {
  return /^intake_([^_]+)_/.exec(key)?.[1] ?? 'unknown';
}

export async function connect(options: Partial<IntakeOptions> = {}): Promise<Intake> {
  return intakeOf(await readSettings(), options);
}

export function intakeOf(
  { url, key }: Pick<Settings, 'url' | 'key'>,
  options: Partial<IntakeOptions> = {},
): Intake {
  return withAdvice(() => new Intake({ url, key, onRetry: onFirstLimit(warn), ...options }));
}

export function connectionOf({ url, key }: Settings, onRetry = onFirstLimit(warn)): Connection {
  return withAdvice(() => new Connection({ url, key, onRetry }));
}

function withAdvice<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw new UsageError(
      `${(error as Error).message}. Run intake login again, or correct INTAKE_URL and INTAKE_KEY.`,
    );
  }
}
