import type { Browser, BrowserContextOptions } from 'playwright-core';
import { openDeployment } from '../../../cli/deployment/deployment.ts';
import type { RunMailroom } from '../../../cli/page/server/run-command.ts';
import { startUi } from '../../../cli/page/server/server.ts';
import { runMailroom } from '../../../cli/program.ts';
import { capturedIo } from '../../support/captured-io.ts';
import { ENGINE_MS, type OpenedPage, openPage } from './opened-page.ts';

/** A server of the page, as `mailroom ui` starts it. */
export interface UiServer {
  /** Opens a tab. */
  open(browser: Browser, options?: BrowserContextOptions): Promise<OpenedPage>;
  stop(): Promise<void>;
}

interface UiServerOptions {
  readonly allowsChanges: boolean;
  readonly showsPayloads: boolean;
  /** @default the `mailroom` command */
  readonly run?: RunMailroom;
}

/** Serves the page of the Mailroom at an endpoint. */
export async function serveUi(endpoint: string, options: UiServerOptions): Promise<UiServer> {
  const deployment = await openDeployment(capturedIo().io, { endpoint, json: true });
  const ui = await startUi({ deployment, run: runMailroom, ...options });
  return {
    open: async (browser, options) => openPage(browser, await ui.newRedirect(), options, ENGINE_MS),
    stop: ui.stop,
  };
}
