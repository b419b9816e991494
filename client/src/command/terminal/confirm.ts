import { UsageError } from '../options/command.ts';
import { readFirstLine } from './read-first-line.ts';
import { prompt } from './terminal.ts';

export interface Confirmation {
  /** Read only if there is somebody to answer it. */
  readonly question: string | (() => Promise<string>);
  /** Describes the consequences, for the error message when there is no terminal. */
  readonly withoutTerminal: string;
  readonly declined: string;
}

/** Asks for confirmation before an action that cannot be undone. Throws unless the response is yes. */
export async function confirm({ question, withoutTerminal, declined }: Confirmation): Promise<void> {
  if (!process.stdin.isTTY) throw new UsageError(`${withoutTerminal} Add --yes to do it.`);
  prompt(`${typeof question === 'string' ? question : await question()} Type yes: `);
  if ((await readFirstLine()) !== 'yes') throw new UsageError(declined);
}
