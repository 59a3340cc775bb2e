import { type Context, Hono } from 'hono';
import { type SSEStreamingApi, streamSSE } from 'hono/streaming';
import { isMailroomError, MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { isObject } from '../../../lambdas/runtime/base/json.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { placeOf } from '../../deployment/place.ts';
import { deadLetterSources } from '../../reports/dead-letters/dead-letters.ts';
import { receivedText } from '../../reports/describe/consumer-description.ts';
import { exactJson } from '../../terminal/exact-json.ts';
import { type Guards, refuse, refuseError } from './guards.ts';
import type { Live } from './live.ts';
import type { KeyExchange } from './one-time-token.ts';
import type { PageFile } from './page-files.ts';
import type { Plans } from './plans.ts';
import type { DemoFault, DemoState, KeyResponse, LiveMessage, MailroomInfo } from './protocol.ts';
import { isReading, type RunReading, readingRequest } from './readings.ts';

/** The parts that the routes lead to. */
interface RouteDeps {
  readonly deployment: Deployment;
  readonly allowsChanges: boolean;
  readonly showsPayloads: boolean;
  readonly page: ReadonlyMap<string, PageFile>;
  readonly guards: Guards;
  readonly keys: KeyExchange;
  readonly read: RunReading;
  readonly live: Live;
  readonly plans: Plans;
  readonly demo: DemoPanel | undefined;
  /** Called when a live stream opens. @returns a function to call when it closes */
  readonly onStream: () => () => void;
  /** Aborted when the server stops. */
  readonly signal: AbortSignal;
}

/** The routes of the server, which `protocol.ts` lists. */
export function createRoutes(deps: RouteDeps): Hono {
  const { guards, page, keys } = deps;
  const app = new Hono();
  app.use('*', guards.every);
  app.on('POST', ['/api/*'], ...guards.post);
  for (const [path, { body, contentType }] of page)
    app.get(path, (c) => c.body(body, 200, { 'Content-Type': contentType }));
  app.post('/api/key', async (c) => {
    const { token } = await bodyOf(c);
    const key = typeof token === 'string' ? keys.exchange(token) : undefined;
    if (key !== undefined) return c.json({ key } satisfies KeyResponse);
    return refuse(
      c,
      401,
      'TOKEN_USED',
      'This address was opened before, or is too old. Press Enter in the terminal that serves this page to open another tab.',
    );
  });
  app.use('/api/*', guards.key);
  app.on('POST', ['/api/*'], guards.change);
  addReadings(app, deps);
  addChanges(app, deps);
  addDemo(app, deps);
  app.notFound((c) => refuse(c, 404, 'NOT_FOUND', `There is nothing at ${c.req.path}.`));
  app.onError((error, c) => refuseError(c, error));
  return app;
}

function addReadings(app: Hono, deps: RouteDeps): void {
  const { read, showsPayloads } = deps;
  app.get('/api/mailroom', async (c) => c.json(await infoOf(deps)));
  app.get('/api/readings/:name', async (c) => {
    const { name } = c.req.param();
    if (!isReading(name)) return c.notFound();
    const given = [...new URL(c.req.url).searchParams];
    if (!showsPayloads && given.some(([key]) => key === 'payload')) {
      return refuse(c, 403, 'PAYLOADS_HIDDEN', 'To show payloads, start mailroom ui with --payload.');
    }
    return c.json(await read(readingRequest(name, given)));
  });
  app.get('/api/live', (c) => streamSSE(c, (stream) => sendLive(stream, deps)));
}

function addChanges(app: Hono, { plans }: RouteDeps): void {
  app.post('/api/plans', async (c) => c.json(await plans.make(await bodyOf(c))));
  app.post('/api/plans/:id/apply', async (c) => c.json(plans.apply(c.req.param('id'), await bodyOf(c))));
  app.post('/api/runs/:id/stop', (c) => c.json(plans.stop(c.req.param('id'))));
}

function addDemo(app: Hono, { demo, live }: RouteDeps): void {
  if (demo === undefined) return;
  for (const act of ['break', 'repair'] as const) {
    app.post(`/api/demo/faults/:name/${act}`, async (c) => {
      const fault = demo.state().faults.find(({ name }) => name === c.req.param('name'));
      if (fault === undefined) return c.notFound();
      await demo[act](fault.name);
      live.refresh();
      return c.json(demo.state());
    });
  }
  for (const act of ['end', 'start'] as const) {
    app.post(`/api/demo/${act}`, (c) => {
      demo[`${act}Run`]();
      return c.json(demo.state());
    });
  }
}

async function infoOf({ deployment, demo, ...deps }: RouteDeps): Promise<MailroomInfo> {
  const { stack, account, region } = await placeOf(deployment);
  const { directory, isLocal } = deployment;
  return {
    stack,
    region,
    account,
    isLocal,
    allowsChanges: deps.allowsChanges,
    showsPayloads: deps.showsPayloads,
    consumers: directory.consumers.map(({ name, events, forwardsTo }) => ({
      name,
      events: events.map(receivedText),
      forwardsTo: forwardsTo?.name ?? null,
    })),
    sources: deadLetterSources(directory).map(({ name }) => name),
    isDemo: demo !== undefined,
  };
}

/** Sends what is live until the tab closes the stream. Of messages that replace each other, a slow tab receives the last one. */
async function sendLive(stream: SSEStreamingApi, { live, onStream, signal }: RouteDeps): Promise<void> {
  const waiting = new Map<string, LiveMessage>();
  let wake = (): void => {};
  const add = (message: LiveMessage): void => {
    waiting.set(message.kind === 'run' ? `run ${message.run.id}` : message.kind, message);
    wake();
  };
  const ended = AbortSignal.any([signal, closeOf(stream)]);
  ended.addEventListener('abort', () => wake());
  const end = onStream();
  const unsubscribe = live.subscribe(add);
  try {
    while (!ended.aborted) {
      const [[name, message] = []] = waiting;
      if (name === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        continue;
      }
      waiting.delete(name);
      await stream.writeSSE({ data: JSON.stringify(message) });
    }
  } finally {
    unsubscribe();
    end();
  }
}

function closeOf(stream: SSEStreamingApi): AbortSignal {
  const closed = new AbortController();
  stream.onAbort(() => closed.abort());
  return closed.signal;
}

/** The body of a request: an object of JSON. */
async function bodyOf(c: Context): Promise<Readonly<Record<string, unknown>>> {
  const value = jsonOf(await c.req.text());
  if (isObject(value) && !Array.isArray(value)) return value;
  throw new MailroomError('BAD_ARGUMENT', 'The body of the request must be a JSON object.');
}

/** @throws `JSON_TOO_DEEP` or `BAD_ARGUMENT`: no command could write it again */
function jsonOf(text: string): unknown {
  try {
    return exactJson(text);
  } catch (error) {
    if (isMailroomError(error, 'JSON_TOO_DEEP') || isMailroomError(error, 'BAD_ARGUMENT')) throw error;
    return undefined;
  }
}

/** The runs of `npm run demo -- --ui`, and the faults that it can make on the engine that it started. */
export interface DemoPanel {
  state(): DemoState;
  /** Makes a fault. Nothing happens if it is already made. */
  break(name: DemoFault['name']): Promise<void>;
  /** Runs the command that repairs a fault. Nothing happens if there is nothing to repair. */
  repair(name: DemoFault['name']): Promise<void>;
  /** Places no more orders. The receipt follows once everything is processed. */
  endRun(): void;
  /** Starts a run without any fault. Nothing happens during a run. */
  startRun(): void;
  /** Calls the listener after every change of the state. @returns a function that ends this */
  onChange(listener: () => void): () => void;
}
