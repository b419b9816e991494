import { UsageError } from '../options/command.ts';
import { readFirstLine } from './read-first-line.ts';
import { prompt } from './terminal.ts';

export interface Confirmation {
  readonly question: string;
  /** What would happen, if there is no terminal to ask on. */
  readonly withoutTerminal: string;
  readonly declined: string;
}

/** Asks before something that cannot be undone; throws unless the answer is yes. */
export async function confirm({ question, withoutTerminal, declined }: Confirmation): Promise<void> {
  if (!process.stdin.isTTY) throw new UsageError(`${withoutTerminal} Add --yes to do it.`);
  prompt(`${question} Type yes: `);
  if ((await readFirstLine()) !== 'yes') throw new UsageError(declined);
}
