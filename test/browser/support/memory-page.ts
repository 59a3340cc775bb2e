import type { Browser, BrowserContextOptions } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { NO_FLOW } from '../../../cli/page/client/flow/stories.ts';
import { readPageFiles } from '../../../cli/page/server/page-files.ts';
import type { Flow, StatusDocument } from '../../../cli/page/server/protocol.ts';
import { runningUi } from '../../unit/cli/support/running-ui.ts';
import { openPage } from './opened-page.ts';

/** A tab on a Mailroom in memory, served by the real server. @param deps - replace parts of the server */
export async function openedInMemory(
  browser: Browser,
  options: BrowserContextOptions = {},
  deps: Parameters<typeof runningUi>[0] = {},
) {
  const running = await runningUi({ page: await readPageFiles(), ...deps });
  const { page } = await openPage(browser, running.ui.redirectFile, options);
  onTestFinished(() => page.context().close());
  const send = async (part: Partial<Flow>) => {
    await expect.poll(() => running.listeners.size).toBeGreaterThan(0);
    for (const listener of running.listeners)
      listener({ kind: 'flow', flow: { ...NO_FLOW, at: 1, ...part } });
  };
  return { ...running, page, send };
}

/** The status of a Mailroom without consumers and events. */
export function statusOf(
  state: StatusDocument['state'],
  findings: StatusDocument['findings'],
): StatusDocument {
  return {
    stack: 'mailroom-dev',
    region: 'us-east-1',
    at: 1,
    state,
    ok: state === 'ok',
    findings,
    outbox: {
      pending: 0,
      oldestPendingMs: 0,
      oldestCommittedMs: 0,
      inDatabase: { pending: 0, oldestPendingMs: 0, oldest: null },
      dead: 0,
      unreadable: 0,
      undeclared: 0,
      firstUndeclared: null,
      sweptAgoMs: null,
      stuck: [],
      unsweptMs: 0,
      scheduled: { withinMs: 0, due: 0, nextDueAt: null, overdue: 0 },
    },
    wiring: { problems: [], notChecked: [], skipped: [] },
    looks: [],
    heartbeat: null,
    consumers: {},
    sourceConsumers: {},
    limits: [],
    deadLetterSources: [],
    gone: [],
    atLeast: [],
  };
}
