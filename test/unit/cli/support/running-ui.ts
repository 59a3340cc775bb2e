import { readFile } from 'node:fs/promises';
import { type IncomingHttpHeaders, request } from 'node:http';
import { onTestFinished } from 'vitest';
import type { PageFile } from '../../../../cli/page/server/page-files.ts';
import type { LiveMessage, Plan, Run } from '../../../../cli/page/server/protocol.ts';
import { type RunningUi, startUi, type UiDeps } from '../../../../cli/page/server/server.ts';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { capturedIo } from '../../../support/captured-io.ts';
import { ThingHappened } from '../../../support/runtime-rig.ts';
import { mailroomInMemory } from './mailroom-in-memory.ts';
import { type MemoryMailroom, memoryDeployment } from './memory-deployment.ts';

/** A response, as it came over the socket. */
interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body, parsed. */
  json<T = { readonly code?: string; readonly message?: string }>(): T;
}

/** A request, as a hostile program may send it: `fetch` refuses to send an external Host or Origin. */
export interface SentRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** A page whose content does not matter. */
const PAGE: ReadonlyMap<string, PageFile> = new Map([
  ['/', { contentType: 'text/html; charset=utf-8', body: Buffer.from('<!doctype html>') }],
]);

/** A plan and its run, as the server is given them. */
const PLAN: Plan = {
  id: 'plan-1',
  kind: 'redrive',
  command: 'npx cdk-mailroom dlq redrive consumer:worker',
  expiresAt: 0,
  document: {} as never,
  count: 1,
  confirmation: '1',
  effects: [],
};

export const RUN: Run = {
  id: 'run-1',
  kind: 'redrive',
  command: PLAN.command,
  state: 'running',
  startedAt: 0,
  reached: {},
  progress: '',
  document: null,
  error: null,
  exitCode: null,
  notes: [],
};

/** The server of `mailroom ui` on a Mailroom in memory, listening on a socket. It ends with the test. */
export async function runningUi(options: Partial<UiDeps> & { readonly mailroom?: MemoryMailroom } = {}) {
  const mailroom = options.mailroom ?? mailroomInMemory([leased(ThingHappened, async () => {})]);
  const { io } = capturedIo();
  const listeners = new Set<(message: LiveMessage) => void>();
  const calls: unknown[][] = [];
  const ui = await startUi({
    deployment: memoryDeployment(mailroom, io, {}),
    allowsChanges: false,
    showsPayloads: false,
    page: PAGE,
    live: {
      subscribe: (send) => {
        listeners.add(send);
        return () => void listeners.delete(send);
      },
      refresh: () => void calls.push(['refresh']),
      announce: (message) => {
        for (const send of listeners) send(message);
      },
    },
    plans: {
      make: async (given) => {
        calls.push(['make', given]);
        return PLAN;
      },
      apply: (...given) => {
        calls.push(['apply', ...given]);
        return RUN;
      },
      stop: (...given) => {
        calls.push(['stop', ...given]);
        return { ...RUN, state: 'stopped' };
      },
      runs: () => [],
    },
    ...options,
  });
  onTestFinished(() => ui.stop());
  const origin = new URL(ui.url).origin;
  const send = (path: string, sent: SentRequest = {}) => sendTo(ui.url, path, sent);
  const post = (path: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
    send(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { Origin: origin, 'Content-Type': 'application/json', ...headers },
    });
  let key: Promise<string> | undefined;
  /** The headers of a tab that has opened the redirect file. */
  const withKey = async () => {
    key ??= keyOf(ui, post);
    return { Authorization: `Bearer ${await key}` };
  };
  return {
    ui,
    origin,
    mailroom,
    send,
    post,
    withKey,
    calls,
    listeners,
    get: async (path: string) => send(path, { headers: await withKey() }),
    change: async (path: string, body: unknown = {}, headers: Readonly<Record<string, string>> = {}) =>
      post(path, body, { ...(await withKey()), ...headers }),
  };
}

/** The one-time token in a redirect file. */
export async function tokenIn(file: string): Promise<string> {
  const [, token = ''] = /#token=([\w-]+)/.exec(await readFile(file, 'utf8')) ?? [];
  return token;
}

async function keyOf(
  { redirectFile }: RunningUi,
  post: (path: string, body: unknown) => Promise<Received>,
): Promise<string> {
  const response = await post('/api/key', { token: await tokenIn(redirectFile) });
  return response.json<{ readonly key: string }>().key;
}

async function sendTo(url: string, path: string, { method = 'GET', headers, body }: SentRequest) {
  return await new Promise<Received>((resolve, reject) => {
    const sent = request(url, { method, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('error', reject);
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        const { statusCode: status = 0, headers } = response;
        resolve({ status, headers, text, json: <T>() => JSON.parse(text) as T });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
