import type { ParseArgsOptionsConfig } from 'node:util';
import { uploadTypes } from '../../generated/resources.ts';

export interface Command {
  /** A one-line summary for the list of commands. */
  readonly summary: string;
  /** The usage, options and examples. */
  readonly help: string;
  readonly options: ParseArgsOptionsConfig;
  /** The possible first arguments, for shell completion. */
  readonly words?: readonly string[];
  readonly takesFiles?: boolean;
  /**
   * Resolves to the exit code: 0, or 1 if some records failed. Throws if the command could not run, which means exit code 2.
   */
  run(values: Values, positionals: readonly string[]): Promise<number>;
}

export interface Values {
  readonly [option: string]: string | boolean | (string | boolean)[] | undefined;
}

/** The possible values of each option, for shell completion. */
export const choices: Readonly<Record<string, readonly string[]>> = {
  type: uploadTypes,
  format: ['ndjson', 'csv', 'parquet'],
  status: ['200', '207', '400'],
};

export function choiceOf(values: Values, option: string): string | undefined {
  const text = textOf(values, option);
  const allowed = choices[option] ?? [];
  if (text === undefined || allowed.includes(text)) return text;
  throw new UsageError(`--${option} must be one of ${allowed.join(', ')}, not ${text}.`);
}

/** A mistake by the user. The command prints only the error's lines, which explain what to change. */
export class UsageError extends Error {
  readonly lines: readonly string[];

  constructor(...lines: readonly string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

export function textOf(values: Values, option: string): string | undefined {
  const value = values[option];
  return typeof value === 'string' ? value : undefined;
}

export function textsOf(values: Values, option: string): string[] {
  const value = values[option];
  return Array.isArray(value) ? value.map(String) : [];
}

export function countOf(values: Values, option: string, fallback: number): number {
  const text = textOf(values, option);
  if (text === undefined) return fallback;
  if (!/^[1-9]\d{0,8}$/.test(text))
    throw new UsageError(`--${option} must be a whole number of 1 or more, not ${text}.`);
  return Number(text);
}
