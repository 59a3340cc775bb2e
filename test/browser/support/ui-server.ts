import type { Browser, BrowserContextOptions } from 'playwright-core';
import { openSession } from '../../../cli/frame/session.ts';
import { runMailroom } from '../../../cli/program.ts';
import { startUi } from '../../../cli/ui/server.ts';
import { capturedIo } from '../../support/captured-io.ts';
import { type OpenedPage, openPage } from './opened-page.ts';

/** A server of the page, as `mailroom ui` starts it. */
export interface UiServer {
  /** Opens a tab. */
  open(browser: Browser, options?: BrowserContextOptions): Promise<OpenedPage>;
  stop(): Promise<void>;
}

/** Serves the page of the Mailroom at an endpoint. */
export async function serveUi(
  endpoint: string,
  allowed: { readonly allowsChanges: boolean; readonly showsPayloads: boolean },
): Promise<UiServer> {
  const session = await openSession(capturedIo().io, { endpoint, json: true });
  const ui = await startUi({ session, run: runMailroom, ...allowed });
  return {
    open: async (browser, options) => openPage(browser, await ui.newRedirect(), options),
    stop: ui.stop,
  };
}
