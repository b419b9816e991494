import { IntakeError } from '../../index.ts';
import { type Command, UsageError } from '../options/command.ts';
import { intakeOf, keepSettings, keyIdOf, readSettings, type Settings } from '../options/settings.ts';
import { readFirstLine } from '../terminal/read-first-line.ts';
import { print, printJson, prompt, say } from '../terminal/terminal.ts';

export const login: Command = {
  summary: 'save the address of a service and a key for it',
  help: `Usage: intake login <address>

Asks for an API key, tries it, and saves both in your configuration folder, in a file that only you can read. The key can
also come from standard input. If INTAKE_URL and INTAKE_KEY are set, they are used instead.

Examples:
  intake login https://intake.example.com
  intake login https://intake.example.com < key.txt`,
  options: {},
  async run(_values, [url, ...rest]) {
    if (url === undefined || rest.length > 0)
      throw new UsageError('Specify the address of the service. See intake login --help.');
    refuseAddress(url);
    const key = process.stdin.isTTY
      ? await askHidden('API key: ')
      : await readFirstLine({ skipsEmpty: true });
    if (key === undefined)
      throw new UsageError(
        'There is no key on standard input. Write it in the first line: intake login <address> < key.txt',
      );
    if (!/^[!-~]+$/.test(key)) throw new UsageError(`That is not an API key. ${keyAdvice}`);
    const permission = await tryKey({ url, key }).catch((error) => {
      throw explainLogin(url, error);
    });
    const file = await keepSettings(url, key);
    say(`The key works${permission}. The address and the key are saved in ${file}.`);
    return 0;
  },
};

export const whoami: Command = {
  summary: 'show which service and key are used, and whether the key works',
  help: `Usage: intake whoami [--json]

Examples:
  intake whoami
  intake whoami --json | jq -r .key_id`,
  options: { json: { type: 'boolean' } },
  async run(values) {
    const settings = await readSettings();
    const permission = await tryKey(settings);
    const keyId = keyIdOf(settings.key);
    if (values.json) await printJson({ url: settings.url, key_id: keyId, source: settings.source });
    else {
      await print(
        `Service  ${settings.url}`,
        `Key      ${keyId}, works${permission}`,
        `From     ${settings.source}`,
      );
    }
    return 0;
  },
};

const keyAdvice = 'Check that you copied all of it, or ask the operator of the service for another key.';

function refuseAddress(url: string): void {
  if (!/^https?:\/\//i.test(url))
    throw new UsageError(
      `${url} has no https:// before it. Write: intake login https://${url.replace(/^\W+/, '')}`,
    );
  if (!URL.canParse(url))
    throw new UsageError(`${url} is not the address of a service. Write it like https://intake.example.com.`);
}

/** Explains to the user what is wrong with the address or key they have just typed. */
function explainLogin(url: string, error: unknown): unknown {
  if (!(error instanceof IntakeError)) return error;
  const { origin, pathname, search, hash } = new URL(url);
  if (error.code === 'unauthorized')
    return new UsageError(`The service does not accept this key. ${keyAdvice}`);
  const hasMore = pathname !== '/' || search !== '' || hash !== '';
  if (hasMore && (error.status === 404 || error.code === 'unexpected_answer'))
    return new UsageError(`There is no service at ${url}. Use the address without a path: ${origin}`);
  return error;
}

/**
 * Tests the key and throws if it is not valid. The test uses the read permission, because no other permission can be tested
 * without side effects.
 */
async function tryKey(settings: Pick<Settings, 'url' | 'key'>): Promise<string> {
  try {
    await intakeOf(settings, { retryForMs: 0 }).data.overview();
    return '';
  } catch (error) {
    if (error instanceof IntakeError && error.code === 'missing_permission') return ', but may not read data';
    throw error;
  }
}

/** Reads a line without echoing it, so that it appears neither in the scrollback nor in screenshots. */
function askHidden(question: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const { stdin } = process;
    let key = '';
    prompt(question);
    stdin.setRawMode(true).setEncoding('utf8').resume();
    const end = (conclude: () => void) => {
      stdin.setRawMode(false).pause().off('data', take);
      say('');
      conclude();
    };
    const take = (text: string) => {
      for (const character of text) {
        if (character === '\r' || character === '\n') return end(() => resolve(key.trim()));
        if (character === '\u0003') return end(() => reject(new UsageError('Nothing was saved.')));
        if (character === '\u007f') key = key.slice(0, -1);
        else key += character;
      }
    };
    stdin.on('data', take);
  });
}
