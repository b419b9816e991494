import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { type Api, apiOf } from './api.ts';
import { createTestDatabase } from './database.ts';
import { scratchCopy } from './scratch-copy.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A page in docs/ with steps for changing the project. */
export class Instructions {
  readonly text: string;
  readonly #page: string;

  constructor(page: string) {
    this.#page = page;
    this.text = readFileSync(join(root, page), 'utf8');
  }

  /** Returns the code block after the page's marker with this name. */
  snippet(name: string): string {
    const pattern = new RegExp(`<!-- snippet: ${name} -->\\n\`\`\`\\w+\\n(.*?)^\`\`\`$`, 'ms');
    const found = pattern.exec(this.text)?.[1];
    if (found === undefined) throw new Error(`${this.#page} has no snippet called ${name}`);
    return found;
  }
}

/** A copy of the project that a test changes, builds and runs, with its own database. */
export class ChangedCopy {
  readonly folder = scratchCopy();
  readonly databaseUrl: string;
  readonly #environment: NodeJS.ProcessEnv;
  #server: ChildProcess | undefined;
  #url = '';

  constructor(databaseUrl: string) {
    this.databaseUrl = databaseUrl;
    this.#environment = {
      ...process.env,
      DATABASE_URL: databaseUrl,
      PORT: '0',
      HOST: '127.0.0.1',
      LOG_LEVEL: 'info',
    };
  }

  static async make(): Promise<ChangedCopy> {
    return new ChangedCopy(await createTestDatabase());
  }

  write(file: string, text: string): void {
    const path = join(this.folder, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text, { flag: 'wx' });
  }

  /** Inserts text before a line that occurs once in the file. */
  insertBefore(file: string, line: string, text: string): void {
    const path = join(this.folder, file);
    const source = readFileSync(path, 'utf8');
    expect(source.split(line)).toHaveLength(2);
    writeFileSync(
      path,
      source.replace(line, () => text + line),
    );
  }

  /** Adds a migration with the next free number, and returns its name. */
  addMigration(name: string, sql: string): string {
    const numbers = readdirSync(join(this.folder, 'migrations')).map((file) => Number.parseInt(file, 10));
    const numbered = `${String(Math.max(...numbers) + 1).padStart(4, '0')}_${name}`;
    this.write(`migrations/${numbered}.sql`, sql);
    return numbered;
  }

  async generateAndBuild(): Promise<void> {
    await this.run(process.execPath, 'scripts/generate-openapi.ts');
    await this.run(join(root, 'node_modules/.bin/tsc'), '-p', 'tsconfig.build.json');
  }

  /** Runs a program in the copy, and returns its output. */
  async run(program: string, ...args: string[]): Promise<string> {
    try {
      const { stdout } = await promisify(execFile)(program, args, {
        cwd: this.folder,
        env: this.#environment,
      });
      return stdout;
    } catch (error) {
      // The compiler reports errors on standard output, which the error's message does not include.
      const { stdout, message } = error as { stdout: string; message: string };
      throw new Error(`${message}\n${stdout}`);
    }
  }

  intake(...args: string[]): Promise<string> {
    return this.run(process.execPath, 'dist/main.js', ...args);
  }

  /** Creates an organisation and starts the service. */
  async serve(): Promise<void> {
    await this.intake('organisations', 'create', 'acme');
    this.#url = await this.#start();
  }

  /** Returns the API with a new key for the organisation. */
  async apiFor(...scopes: readonly string[]): Promise<Api> {
    const asked = scopes.flatMap((scope) => ['--scope', scope]);
    const printed = await this.intake('keys', 'issue', '--organisation', 'acme', ...asked, '--json');
    return apiOf(this.#url, JSON.parse(printed).key);
  }

  #start(): Promise<string> {
    const started = spawn(process.execPath, ['dist/main.js', 'serve'], {
      cwd: this.folder,
      env: this.#environment,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#server = started;
    return new Promise((resolve, reject) => {
      started.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
      createInterface({ input: started.stdout }).on('line', (line) => {
        const address = /Server listening at (https?:\/\/[^"\s]+)/.exec(line)?.[1];
        if (address) resolve(address);
      });
    });
  }

  async remove(): Promise<void> {
    const server = this.#server;
    if (server?.exitCode === null && server.signalCode === null) {
      server.kill('SIGTERM');
      await once(server, 'exit');
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}
