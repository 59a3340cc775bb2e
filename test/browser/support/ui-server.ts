import type { Browser, BrowserContextOptions } from 'playwright-core';
import { type Deployment, openDeployment } from '../../../cli/deployment/deployment.ts';
import { startUi, type UiDeps } from '../../../cli/page/server/server.ts';
import { capturedIo } from '../../support/captured-io.ts';
import { ENGINE_MS, type OpenedPage, openPage } from './opened-page.ts';

/** A server of the page, as `mailroom ui` starts it. */
export interface UiServer {
  /** Opens a tab. */
  open(browser: Browser, options?: BrowserContextOptions): Promise<OpenedPage>;
  stop(): Promise<void>;
}

type UiServerOptions = Pick<UiDeps, 'allowsChanges' | 'showsPayloads'> & {
  /** Changes the deployment. @default it is as it is */
  readonly change?: (deployment: Deployment) => Deployment;
};

/** Serves the page of the Mailroom at an endpoint. */
export async function serveUi(
  endpoint: string,
  { change = (deployment) => deployment, ...options }: UiServerOptions,
): Promise<UiServer> {
  const deployment = change(await openDeployment(capturedIo().io, { endpoint, json: true }));
  const ui = await startUi({ deployment, ...options });
  return {
    open: async (browser, options) => openPage(browser, await ui.newRedirect(), options, ENGINE_MS),
    stop: ui.stop,
  };
}
