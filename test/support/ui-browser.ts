// The Temporal UI in a headless browser: what a person would open, read and press.

import { existsSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, chromium, type Locator, type Page } from 'playwright-core';
import { inject } from 'vitest';
import { CHECKOUT } from './theatre.js';

const NAMESPACE = 'default';
const COLUMNS_KEY = 'namespace-workflow-table-columns';
const COLUMNS = [
  'Status',
  'Workflow ID',
  'HoldfastState',
  'HoldfastHeldAmount',
  'HoldfastCancel',
  'HoldfastNeedsOperator',
  'HoldfastUnknownSince',
];
const IMAGE_BYTES_MAX = 200_000;

export interface UiRun {
  readonly workflowId: string;
  readonly runId: string;
}

export interface UiBrowser {
  readonly page: Page;
  readonly base: string;
  readonly namespace: string;
  /** The ids that a list shows; the address is loaded anew each time. */
  listed(url: string): Promise<string[]>;
  /** Opens a tab of one run, such as `user-metadata`. */
  openTab(run: UiRun, tab: string): Promise<void>;
  /** What stands under Current Details, which has a frame of its own. */
  currentDetails(): Promise<string>;
  /** Opens the dialog and answers it. */
  openSignals(): Promise<Locator>;
  /** Written with UPDATE_SCREENSHOTS=1; else it must be there, and small. */
  keepScreenshot(name: string): Promise<void>;
  close(): Promise<void>;
}

export async function openUiBrowser(): Promise<UiBrowser> {
  const base = inject('temporalUiUrl');
  const browser = await chromium.launch({
    executablePath: process.env['CHROME_PATH'] ?? '',
    // Where these tests run as root, as in a container, Chromium has no sandbox to offer.
    chromiumSandbox: process.getuid?.() !== 0,
  });
  const page = await openPage(browser, base);
  const ui: UiBrowser = {
    ...{ page, base, namespace: NAMESPACE },
    async listed(url) {
      await page.goto(url);
      await page.locator('tbody a[href*="/workflows/"]').first().waitFor();
      const links = await page.locator('tbody a[href*="/workflows/"]').allTextContents();
      return links.map((text) => text.trim());
    },
    async openTab({ workflowId, runId }, tab) {
      const id = encodeURIComponent(workflowId);
      await page.goto(`${base}/namespaces/${NAMESPACE}/workflows/${id}/${runId}/${tab}`);
      await page.getByRole('button', { name: 'More Actions' }).waitFor();
    },
    async currentDetails() {
      const frame = page.locator('iframe').last().contentFrame();
      await frame.locator('table').waitFor();
      return frame.locator('body').innerText();
    },
    async openSignals() {
      await page.getByRole('button', { name: 'More Actions' }).click();
      await page.getByRole('menuitem', { name: 'Send a Signal' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByTestId('signal-select-button').click();
      await dialog.getByRole('option').first().waitFor();
      return dialog;
    },
    keepScreenshot: (name) => keepScreenshot(page, name),
    close: () => browser.close(),
  };
  return ui;
}

async function openPage(browser: Browser, base: string): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    locale: 'en-US',
    timezoneId: 'UTC',
  });
  const columns = JSON.stringify({ [NAMESPACE]: COLUMNS.map((label) => ({ label })) });
  // As text: it runs in the page, where Node's types do not hold.
  await context.addInitScript(
    `localStorage.setItem(${JSON.stringify(COLUMNS_KEY)}, ${JSON.stringify(columns)})`,
  );
  // The UI looks for news of its own on the internet.
  await context.route(
    (url) => url.origin !== new URL(base).origin,
    (route) => route.abort(),
  );
  context.setDefaultTimeout(10_000);
  return context.newPage();
}

async function keepScreenshot(page: Page, name: string): Promise<void> {
  const folder = join(CHECKOUT, 'docs', 'images');
  const file = join(folder, `${name}.png`);
  if (process.env['UPDATE_SCREENSHOTS'] === '1') {
    mkdirSync(folder, { recursive: true });
    // Whatever it stands on would say its name.
    await page.mouse.move(1_270, 300);
    await page.getByRole('tooltip').first().waitFor({ state: 'hidden' });
    await page.screenshot({ path: file, animations: 'disabled', caret: 'hide' });
  }
  if (!existsSync(file)) throw new Error(`${file} is missing; write it with UPDATE_SCREENSHOTS=1`);
  const { size } = statSync(file);
  if (size > IMAGE_BYTES_MAX) throw new Error(`${file} has ${size} bytes, above 200 KB`);
}
