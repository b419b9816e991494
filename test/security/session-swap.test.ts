// @module-tag full

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { makeCertificate } from '../support/certificate.ts';
import {
  barriers,
  chooseFile,
  chromiumPath,
  csvOf,
  headingOf,
  signInAt,
} from '../support/console-browser.ts';
import { newShop } from '../support/new-records.ts';

/** Tests in a browser that nobody can swap the session that a page shows for another one. */

const host = 'console.site.example';
const sibling = 'sub.site.example';

describe.skipIf(!existsSync(chromiumPath))('a session in Chromium', () => {
  const folder = mkdtempSync(join(tmpdir(), 'intake-swap-'));
  const { certFile, keyFile } = makeCertificate(folder, host);
  let server: BuiltServer;
  let other: Server;
  let browser: Browser;
  let console_: string;
  let keys: { victim: string; attacker: string };
  beforeAll(async () => {
    server = await startBuiltServer({ TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile });
    console_ = `https://${host}:${new URL(server.url).port}`;
    keys = { victim: await server.createKey('victim'), attacker: await server.createKey('attacker') };
    const pair = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
    other = createServer(pair, (_request, answer) =>
      answer.setHeader('content-type', 'text/html').end('<title>Sibling</title>'),
    );
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    browser = await chromium.launch({
      executablePath: chromiumPath,
      args: ['--no-sandbox', '--disable-gpu', '--host-resolver-rules=MAP *.site.example 127.0.0.1'],
      timeout: 240_000,
    });
  });
  afterAll(async () => {
    await browser?.close();
    other?.close();
    await server?.stop();
    rmSync(folder, { recursive: true });
  });

  async function openContext() {
    const context = await browser.newContext({ ignoreHTTPSErrors: true, reducedMotion: 'reduce' });
    onTestFinished(() => context.close());
    context.setDefaultTimeout(240_000);
    return context;
  }

  const organisationOf = (page: Page) =>
    page.evaluate<string>(
      "fetch('/console/api/session').then((answer) => answer.json()).then((body) => body.organisation?.slug)",
    );

  async function linkTo(organisation: string): Promise<string> {
    const said = await server.run('console', 'link', '--organisation', organisation, '--json');
    return console_ + JSON.parse(said).path;
  }

  /** Signs in as the attacker, and returns the session's cookie as `name=token`. */
  async function attackersCookie(): Promise<string> {
    const context = await openContext();
    const page = await context.newPage();
    await signInAt(page, `${console_}/console/`, keys.attacker, 'Overview');
    const cookie = (await context.cookies()).find(({ name }) => name.endsWith('intake_console'));
    return `${cookie?.name}=${cookie?.value}`;
  }

  it('cannot be swapped by another host of the same site', async () => {
    const cookie = await attackersCookie();
    const [name, token] = cookie.split('=');
    const context = await openContext();
    const page = await context.newPage();
    await signInAt(page, `${console_}/console/`, keys.victim, 'Overview');
    expect(await organisationOf(page)).toBe('victim');
    const attacker = await context.newPage();
    await attacker.goto(`https://${sibling}:${(other.address() as AddressInfo).port}/`);
    for (const named of [name, 'intake_console', '__Host-intake_console', '__host-intake_console'])
      for (const path of ['/', '/console', '/console/api', '/console/api/session'])
        for (const secure of ['', '; secure'])
          await attacker.evaluate(
            `document.cookie = '${named}=${token}; domain=site.example; path=${path}${secure}'`,
          );
    await attacker.evaluate(`document.cookie = '=${cookie}; domain=site.example; path=/console; secure'`);
    expect(await organisationOf(page)).toBe('victim');
    await page.reload();
    await headingOf(page, 'Overview').waitFor();
    await page.locator('.organisation', { hasText: 'victim' }).waitFor();
    expect(await organisationOf(page)).toBe('victim');
  });

  it('is replaced by a link to another organisation only if its user agrees', async () => {
    const context = await openContext();
    const page = await context.newPage();
    await signInAt(page, `${console_}/console/`, keys.victim, 'Overview');
    const link = await linkTo('attacker');
    await page.goto(link);
    await page.getByText('This browser is signed in to victim, and the link opens attacker').waitFor();
    expect(await barriers(page)).toEqual([]);
    expect(await organisationOf(page)).toBe('victim');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await headingOf(page, 'Overview').waitFor();
    await page.locator('.organisation', { hasText: 'victim' }).waitFor();
    await page.goto(link);
    await page.getByRole('button', { name: 'Sign out and open the link' }).click();
    await headingOf(page, 'Overview').waitFor();
    await page.locator('.organisation', { hasText: 'attacker' }).waitFor();
    await page.goto(await linkTo('attacker'));
    await headingOf(page, 'Overview').waitFor();
  });

  it('changes nothing from a page that shows another organisation', async () => {
    const context = await openContext();
    const page = await context.newPage();
    await signInAt(page, `${console_}/console/upload-file`, keys.victim, 'Upload a file');
    await chooseFile(page, 'shops.csv', csvOf([newShop()]));
    await page.getByRole('button', { name: 'Check the file' }).click();
    await page.getByRole('button', { name: 'Upload 1 row' }).waitFor();
    const later = await context.newPage();
    await signInAt(later, `${console_}/console/sign-in`, keys.attacker, 'Overview');
    await page.getByRole('button', { name: 'Upload 1 row' }).click();
    await page.getByText('This browser has signed in with another key or token').first().waitFor();
    await later.getByRole('link', { name: 'Uploads' }).click();
    await headingOf(later, 'Uploads').waitFor();
    await later.getByText('No requests.').waitFor();
    await page.reload();
    await page.locator('.organisation', { hasText: 'attacker' }).waitFor();
  });
});
