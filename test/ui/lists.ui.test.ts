// The Temporal UI as an operator has it: the lists behind the links, the page of one operation, its
// signals, and the page of a task. The operations are those of lists.yaml.

import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeUiLinks } from '../../client/ui-links.js';
import { runCli } from '../support/run-cli.js';
import { CHECKOUT } from '../support/theatre.js';
import { openUiBrowser, type UiBrowser } from '../support/ui-browser.js';
import { openUiStage, type UiStage } from '../support/ui-stage.js';

const MINUTES_FORWARD = 20;

let stage: UiStage;
let ui: UiBrowser;
const closings: (() => Promise<void>)[] = [];

beforeAll(async () => {
  stage = await openUiStage(join(CHECKOUT, 'test', 'ui', 'lists.yaml'));
  closings.push(() => stage.close());
  ui = await openUiBrowser();
  closings.push(() => ui.close());
});
afterAll(async () => {
  for (const close of closings.reverse()) await close();
});

function links(): Map<string, string> {
  const now = new Date(Date.now() + MINUTES_FORWARD * 60_000);
  const all = describeUiLinks(ui.base, ui.namespace, { now, bigHoldAmount: 40n });
  return new Map(all.map(({ name, url }) => [name, url]));
}

const idsOf = (...names: string[]): string[] => names.map((name) => stage.workflowId(name)).sort();

/** Lists are a little behind: the address is opened again until it shows what it should. */
async function expectListed(link: string, names: readonly string[]): Promise<void> {
  const url = links().get(link) ?? '';
  await expect
    .poll(async () => (await ui.listed(url)).sort(), { timeout: 20_000, interval: 200 })
    .toEqual(idsOf(...names));
}

const LISTS: readonly (readonly [string, readonly string[]])[] = [
  ['unknown', ['summary', 'scan-1', 'scan-2']],
  ['unknown for longer than 15 minutes', ['summary', 'scan-1', 'scan-2']],
  ['a wish to stop that is not confirmed', ['index']],
  ['the biggest holds', ['summary', 'train', 'index']],
  ['needs an operator', ['summary', 'scan-1', 'scan-2', 'index', 'dear']],
  ['a hold whose workflow was closed by force', ['export']],
];

describe('the lists behind the links', () => {
  test('the story that they show came to its end', () => {
    expect(stage.off).toEqual([]);
    expect([...links().keys()]).toEqual(LISTS.map(([name]) => name));
  });

  test.each(LISTS)('%s: exactly those are listed', async (name, operations) => {
    await expectListed(name, operations);
  });

  test('the columns show state, hold, wish, need and since when', async () => {
    await ui.listed(links().get('unknown') ?? '');
    const row = ui.page.locator('tbody tr', { hasText: stage.workflowId('scan-1') });
    await row.waitFor();
    const cells = (await row.locator('td').allInnerTexts()).map((text) => text.trim());
    expect(cells.slice(-5, -1)).toEqual(['unknown', '20', 'none', 'TRUE']);
    expect(cells.at(-1)).toMatch(/^\w{3} \d+, \d{4}/);
    await ui.page.getByTestId('table-maximize-button').click();
    await ui.keepScreenshot('ui-unknown-operations');
  });
});

describe('the page of an unknown operation', () => {
  test('User Metadata tells state, hold, last answer, next question and the commands', async () => {
    const { operationKey } = await stage.operation('scan-1');
    await ui.openTab(await stage.run('scan-1'), 'user-metadata');
    const details = await ui.currentDetails();
    expect(details).toMatch(/State\s+UNKNOWN/);
    expect(details).toMatch(/Held\s+20 credit/);
    expect(details).toMatch(/Last answer\s+http 503/);
    expect(details).toMatch(/Next question\s+\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/);
    expect(details).toMatch(/Needs an operator\s+yes/);
    for (const command of ['show', 'lookup', 'cancel']) {
      expect(details).toContain(`holdfast ops ${command} ${operationKey}`);
    }
    expect(details).not.toMatch(/\d\.\d{3,}/);
    await ui.keepScreenshot('ui-unknown-operation');
  });

  test('a question that brings nothing new is in the details all the same', async () => {
    const { attempts } = await stage.operation('scan-1');
    const count = attempts[0]?.questionCount ?? 0;
    await stage.signal('scan-1', 'lookUpNow');
    await expect
      .poll(
        async () => {
          await ui.openTab(await stage.run('scan-1'), 'user-metadata');
          return ui.currentDetails();
        },
        { timeout: 20_000 },
      )
      .toContain(`asked ${count + 1} times`);
  });

  test('Pending Activities shows `ask` with what was answered last', async () => {
    await ui.openTab(await stage.run('scan-1'), 'pending-activities');
    const main = ui.page.locator('main');
    await main
      .getByText(/last answer: http 503; the hold of 20 stays/)
      .first()
      .waitFor();
    expect(await main.innerText()).toMatch(/\bask\b[\s\S]*CHARGE_NOT_KNOWN_YET/);
  });
});

describe('signals from the UI', () => {
  test('the dialog lists both with a description, and their example is JSON', async () => {
    await ui.openTab(await stage.run('scan-1'), 'history');
    const dialog = await ui.openSignals();
    const options = (await dialog.getByRole('option').allInnerTexts()).map((text) =>
      text.replace(/\s+/g, ' ').trim(),
    );
    expect(options.map((text) => text.split(' ')[0])).toEqual([
      'Custom',
      'requestCancel',
      'lookUpNow',
    ]);
    for (const option of options.slice(1)) {
      const example: unknown = JSON.parse(option.slice(option.indexOf('{')));
      expect(Object.keys(example as object)).toEqual(['by', 'reason']);
    }
  });

  test('a wish without any input is stored, and the supervisor goes on', async () => {
    await ui.openTab(await stage.run('scan-1'), 'history');
    const dialog = await ui.openSignals();
    await dialog.getByRole('option', { name: 'requestCancel' }).click();
    await dialog.getByRole('button', { name: 'Submit' }).click();
    await expectWish('scan-1');
    await expectUnharmed('scan-1');
  });

  test('what is no JSON is not sent', async () => {
    const dialog = await fillCancel('scan-2', '{"by": ada,, stop it');
    await dialog.getByRole('button', { name: 'Submit' }).click();
    await dialog.getByText('Input must be valid JSON').waitFor();
    expect((await stage.operation('scan-2')).cancel).toBe('none');
  });

  test('JSON that makes no sense is a wish all the same, and the supervisor goes on', async () => {
    const dialog = await fillCancel(
      'scan-2',
      '[7, null, {"by": {"by": "\\u0000"}, "reason": [0]}]',
    );
    await dialog.getByRole('button', { name: 'Submit' }).click();
    await expectWish('scan-2');
    await expectUnharmed('scan-2');
  });

  test('Request Cancellation on a job is a wish in the ledger, and the job stays supervised', async () => {
    await ui.openTab(await stage.run('train'), 'history');
    await ui.page.getByRole('button', { name: 'Request Cancellation' }).click();
    await ui.page.getByRole('dialog').getByRole('button', { name: 'Confirm' }).click();
    await expectWish('train');
    await expectUnharmed('train');
    await expectListed('a wish to stop that is not confirmed', [
      'index',
      'scan-1',
      'scan-2',
      'train',
    ]);
  });
});

async function fillCancel(name: string, text: string): Promise<Locator> {
  await ui.openTab(await stage.run(name), 'history');
  const dialog = await ui.openSignals();
  await dialog.getByRole('option', { name: 'requestCancel' }).click();
  const input = dialog.getByRole('textbox', { name: 'Data' });
  await input.fill(text);
  // It writes JSON anew when it is left, and moves the buttons.
  await input.blur();
  return dialog;
}

async function expectWish(name: string): Promise<void> {
  await expect
    .poll(async () => (await stage.operation(name)).cancel, { timeout: 10_000 })
    .toMatch(/^(requested|acknowledged)$/);
}

/** It answers, none of its workflow tasks has failed, and it goes on. */
async function expectUnharmed(name: string): Promise<void> {
  const workflow = stage.stage.temporal.workflow.getHandle(stage.workflowId(name));
  expect(await workflow.query<string>('explain')).toContain(`Operation "${name}"`);
  const { status, raw } = await workflow.describe();
  expect(status.name).toBe('RUNNING');
  expect(raw.pendingWorkflowTask?.attempt ?? 1).toBe(1);
  const { events } = await workflow.fetchHistory();
  const failed = (events ?? []).filter((event) => event.workflowTaskFailedEventAttributes != null);
  expect(failed).toEqual([]);
}

describe('the page of a task', () => {
  test('User Metadata has a table of its steps, and the commands', async () => {
    await ui.openTab(await stage.run('report'), 'user-metadata');
    const details = await ui.currentDetails();
    expect(details).toMatch(/draft\s+ended\s+settled; charged 6 credit/);
    expect(details).toMatch(/render\s+started/);
    expect(details).toMatch(/proofread\s+waiting/);
    expect(details).toMatch(/holdfast task show report-\w+/);
    await ui.keepScreenshot('ui-task');
  });

  test('a step that runs is shown as started before any step has ended', async () => {
    await ui.openTab(await stage.run('survey'), 'user-metadata');
    expect(await ui.currentDetails()).toMatch(/crawl\s+started/);
  });
});

describe('a supervisor that was terminated', () => {
  test('is brought back by the sweeper, and its operation is in the list of the unknown again, once', async () => {
    const { databaseUrl, temporalAddress } = stage.stage;
    const swept = await runCli(['sweep', '--grace', '0s', '--json'], {
      DATABASE_URL: databaseUrl,
      TEMPORAL_ADDRESS: temporalAddress,
    });
    expect(swept.stdout, swept.stderr).toContain('"restarted"');
    await expectListed('unknown', ['summary', 'scan-1', 'scan-2', 'export']);
    expect((await stage.operation('export')).attempts[0]?.heldAmount).toBe('35');
  });
});
