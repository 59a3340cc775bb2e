import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAdaptorServer } from '@hono/node-server';
import { errorCode, MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { guards } from './guards.ts';
import { createLive, type Live } from './live.ts';
import { createKeyExchange, createRedirects } from './one-time-token.ts';
import { type PageFile, readPageFiles } from './page-files.ts';
import { createPlans, type Plans } from './plans.ts';
import type { Run } from './protocol.ts';
import { createReadings, type RunReading } from './readings.ts';
import { createRoutes, type DemoPanel } from './routes.ts';

/** The only interface that the server listens on: no other machine reaches it. */
const HOST = '127.0.0.1';

/** The default of `idleMs`: 30 minutes. */
export const IDLE_MS = 30 * 60_000;

/** The default of `redirectMs`: a browser reads the file at once. */
const REDIRECT_MS = 60_000;

/** Properties of {@link startUi}. */
export interface UiDeps {
  readonly deployment: Deployment;
  /** True if the page may change something. */
  readonly allowsChanges: boolean;
  /** True if the page may show the data of events. */
  readonly showsPayloads: boolean;
  /** @default a free port */
  readonly port?: number | undefined;
  /** The server stops after this time without use, milliseconds. @default 30 minutes */
  readonly idleMs?: number;
  /** A redirect file and its token are valid for this time, milliseconds. @default 1 minute */
  readonly redirectMs?: number;
  /** The panel of the demo. @default the page has none */
  readonly demo?: DemoPanel;
  /** @default the built page */
  readonly page?: ReadonlyMap<string, PageFile>;
  /** @default a poller of the deployment's Mailroom */
  readonly live?: Live;
  /** @default the commands themselves */
  readonly read?: RunReading;
  /** @default the commands themselves */
  readonly plans?: Plans;
}

/** A server that runs. */
export interface RunningUi {
  /** The address of the page, without a token: `http://127.0.0.1:<port>/`. */
  readonly url: string;
  /** The path of a file that opens the page in a browser, once. */
  readonly redirectFile: string;
  /** Resolves when the first tab shows the page. */
  readonly opened: Promise<void>;
  /** Settled when the server has stopped: `idle` if it was not used. */
  readonly ended: Promise<'idle' | 'stopped'>;
  /** Writes another file with a new token, for another tab. @returns its path */
  newRedirect(): Promise<string>;
  /** Stops the server and its commands, and deletes the redirect files. */
  stop(): Promise<void>;
}

/**
 * Serves the page of a Mailroom on 127.0.0.1.
 *
 * @throws `BAD_ARGUMENT` if the port is taken
 *
 * @example
 * ```ts
 * const ui = await startUi({ deployment, allowsChanges: false, showsPayloads: false });
 * await open(ui.redirectFile);
 * await ui.ended;
 * ```
 */
export async function startUi(deps: UiDeps): Promise<RunningUi> {
  const { deployment, demo, allowsChanges, idleMs = IDLE_MS, live = createLive(deployment) } = deps;
  const announce = (run: Run): void => {
    live.announce({ kind: 'run', run });
    // It has changed what was read.
    if (run.state !== 'running') live.refresh();
  };
  const { plans = createPlans({ deployment, allowsChanges, announce }) } = deps;
  const page = deps.page ?? (await readPageFiles());
  const stopping = new AbortController();
  const signal = AbortSignal.any([stopping.signal, deployment.terminal.signal]);
  const keys = createKeyExchange();
  const idle = createIdleWatch(idleMs, {
    onIdle: () => stopping.abort('idle'),
    isBusy: () => runningOf(plans).length > 0,
  });
  let origin = '';
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const app = createRoutes({
    ...deps,
    live,
    ...{ plans, demo, keys, signal, page },
    guards: guards({ origin: () => origin, accepts: keys.accepts, allowsChanges, onUse: idle.seen }),
    read: deps.read ?? createReadings(deployment, signal),
    onStream: () => {
      open();
      return idle.begin();
    },
  });
  const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false }) as Server;
  origin = await listen(server, deps.port ?? 0);
  const redirects = createRedirects(keys, origin, deps.redirectMs ?? REDIRECT_MS);
  const forget = announceDemo(demo, live);
  const ended = once(signal, 'abort').then(async (): Promise<'idle' | 'stopped'> => {
    idle.stop();
    forget();
    await Promise.all([redirects.removeAll(), close(server), stopRuns(plans)]);
    return stopping.signal.reason === 'idle' ? 'idle' : 'stopped';
  });
  return {
    url: `${origin}/`,
    redirectFile: await redirects.add(),
    opened,
    ended,
    newRedirect: redirects.add,
    stop: async () => {
      stopping.abort('stopped');
      await ended;
    },
  };
}

/** The interval in which the end of runs is awaited. */
const RUN_POLL_MS = 50;

/** Stops the changes that are being made where that is safe, as Ctrl-C stops a command, and waits for their end. */
async function stopRuns(plans: Plans): Promise<void> {
  for (const { id } of runningOf(plans)) plans.stop(id);
  while (runningOf(plans).length > 0) await sleep(RUN_POLL_MS);
}

function runningOf(plans: Plans): Run[] {
  return plans.runs().filter(({ state }) => state === 'running');
}

/** Announces the state of the demo, now and after each change. @returns a function that ends this */
function announceDemo(demo: DemoPanel | undefined, live: Live): () => void {
  if (demo === undefined) return () => {};
  const announce = (): void => live.announce({ kind: 'demo', demo: demo.state() });
  announce();
  return demo.onChange(announce);
}

/** @returns the origin of the page */
async function listen(server: Server, port: number): Promise<string> {
  const failed = once(server, 'error').then(([error]) => {
    throw error;
  });
  server.listen(port, HOST);
  try {
    await Promise.race([once(server, 'listening'), failed]);
  } catch (error) {
    if (errorCode(error) !== 'EADDRINUSE') throw error;
    throw new MailroomError(
      'BAD_ARGUMENT',
      `--port is ${port}, which another program uses. Choose another one, or leave it out.`,
    );
  }
  return `http://${HOST}:${(server.address() as AddressInfo).port}`;
}

/** Closes a server. A tab's stream would keep it open. */
async function close(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}

/**
 * Watches whether a server is used: calls `onIdle` once after `idleMs` without use.
 *
 * @param isBusy - postpones the end, e.g. while a change is made and no tab is open
 */
export function createIdleWatch(
  idleMs: number,
  { onIdle, isBusy }: { readonly onIdle: () => void; readonly isBusy: () => boolean },
) {
  let uses = 0;
  let timer: NodeJS.Timeout | undefined;
  const restart = (): void => {
    clearTimeout(timer);
    if (uses === 0) timer = setTimeout(() => (isBusy() ? restart() : onIdle()), idleMs).unref();
  };
  restart();
  return {
    /** The server was used now. */
    seen: restart,
    /** It is in use until the returned function is called. */
    begin: () => {
      uses += 1;
      clearTimeout(timer);
      let ended = false;
      return () => {
        if (ended) return;
        ended = true;
        uses -= 1;
        restart();
      };
    },
    stop: () => {
      uses = Number.POSITIVE_INFINITY;
      clearTimeout(timer);
    },
  };
}
