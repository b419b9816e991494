import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { onTestFinished } from 'vitest';
import { type AdminServer, adminToken, startAdminServer } from './admin-server.ts';
import { launchChromium } from './console-browser.ts';

/** The operator console in Debian's Chromium, with its recorded traffic. */
export class OperatorPages {
  readonly server: AdminServer;
  readonly browser: Browser;
  /** Errors that the pages logged. */
  readonly complaints: string[] = [];
  /** Every URL that a page visited or requested. */
  readonly addresses: string[] = [];

  static async start(env: Record<string, string> = {}): Promise<OperatorPages> {
    const server = await startAdminServer(env);
    return new OperatorPages(server, await launchChromium());
  }

  private constructor(server: AdminServer, browser: Browser) {
    this.server = server;
    this.browser = browser;
  }

  async stop(): Promise<void> {
    await this.browser.close();
    await this.server.stop();
  }

  /** Returns a screen's URL. */
  at(path = ''): string {
    return `${this.server.adminUrl}/console/${path}`;
  }

  /** Opens an empty page, which is closed when the test ends. */
  async open(options: BrowserContextOptions = {}): Promise<Page> {
    const viewport = { width: 1280, height: 900 };
    const context = await this.browser.newContext({ viewport, reducedMotion: 'reduce', ...options });
    onTestFinished(() => context.close());
    context.setDefaultTimeout(240_000);
    const page = await context.newPage();
    page.on('request', (request) => this.addresses.push(request.url()));
    page.on('framenavigated', (frame) => this.addresses.push(frame.url()));
    page.on('pageerror', (error) => this.complaints.push(error.message));
    page.on('console', (message) => {
      // Browsers log every error status, including the 401 before signing in.
      if (message.type() === 'error' && !message.text().includes('status of 401'))
        this.complaints.push(message.text());
    });
    return page;
  }

  /** Signs in and opens a screen. */
  async signedIn(path = '', token = adminToken, options: BrowserContextOptions = {}): Promise<Page> {
    const page = await this.open(options);
    await page.goto(this.at(path));
    await signInWith(page, token);
    await page.locator('#main h1').waitFor();
    return page;
  }
}

export async function signInWith(page: Page, token = adminToken): Promise<void> {
  await page.getByLabel('Admin token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

export const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name });
export const press = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name }).first().click();
export const rowOf = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text }).first();
