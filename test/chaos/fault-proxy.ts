import { Agent, createServer, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** One call of an AWS SDK, as it comes by. */
export interface Call<Caller extends string = string> {
  /** Who makes it, by the address that it was given. */
  readonly from: Caller;
  /** The process that makes it. */
  readonly pid: number;
  /** The API's name of it, e.g. `PutEvents`, `BatchExecuteStatement`, `Invoke`. */
  readonly action: string;
  /** What it asks for. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** What the engine, or a fault in its place, answers. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Hands a call on to the engine, as it is or with another body. */
type Forward = (body?: Readonly<Record<string, unknown>>) => Promise<Answer>;

/**
 * What a fault does with a call. It may forward it or not, and before, after or instead of that do what it likes.
 *
 * @returns what the caller gets; `undefined` cuts the connection without an answer
 */
export type Act = (call: Call, forward: Forward) => Promise<Answer | undefined>;

/** Which calls a fault meets. What is left out is not asked about. */
export interface CallPattern<Caller extends string = string> {
  readonly from?: Caller;
  readonly action?: string;
  readonly where?: (call: Call<Caller>) => boolean;
  /** How many calls it meets at the most. @default all */
  readonly times?: number;
}

/** A fault in force. */
export interface Fault {
  /** How many calls it has met: a scenario whose fault met none has shown nothing. */
  readonly hits: number;
  remove(): void;
}

/** A proxy between the functions and the engine, on the loopback address only. Without faults it changes nothing. */
export interface FaultProxy<Caller extends string = string> {
  /** The address for one caller: its name, and the id of its process, are how its calls are known. */
  urlFor(caller: Caller): string;
  /** Puts a fault in force. Of several that match a call, the newest gets it. */
  inject(pattern: CallPattern<Caller>, act: Act): Fault;
  /** Removes all faults. */
  clear(): void;
  close(): Promise<void>;
}

/** What {@link startFaultProxy} needs. */
export interface FaultProxyDeps {
  /** The engine. */
  readonly endpoint: string;
  /** Sees each call that the engine got, with the engine's own answer. */
  readonly onAnswered?: (call: Call, answer: Answer) => void;
}

/**
 * A connection to the engine that was idle for this long is not used again. The engine closes idle ones after 75 s, and
 * a call that goes out in that moment is reset.
 */
const IDLE_MAX_MS = 30_000;

/** Starts a proxy on a free port. */
export async function startFaultProxy<Caller extends string>({
  endpoint,
  onAnswered,
}: FaultProxyDeps): Promise<FaultProxy<Caller>> {
  const agent = new Agent({ keepAlive: true, timeout: IDLE_MAX_MS });
  const faults = new Set<
    Fault & { readonly pattern: CallPattern<Caller>; readonly act: Act; hits: number }
  >();

  async function answerTo(incoming: IncomingMessage): Promise<Answer | undefined> {
    const { from, pid, path } = callerOf(incoming.url ?? '/');
    const body = await text(incoming);
    const call: Call<Caller> = {
      from: from as Caller,
      pid,
      action: actionOf(incoming, path),
      body: parsed(body),
    };
    const forward: Forward = async (changed) => {
      const sent = changed === undefined ? body : JSON.stringify(changed);
      const answer = await ask({ agent, endpoint, incoming, path, body: sent });
      onAnswered?.(changed === undefined ? call : { ...call, body: changed }, answer);
      return answer;
    };
    const fault = [...faults].findLast(({ pattern, hits }) => matches(pattern, call, hits));
    if (fault === undefined) return forward();
    fault.hits += 1;
    return fault.act(call, forward);
  }

  const server = createServer((incoming, outgoing) => {
    answerTo(incoming).then(
      (answer) => {
        if (answer === undefined) incoming.socket.destroy();
        else outgoing.writeHead(answer.status, answer.headers).end(answer.body);
      },
      // The engine is gone, or the caller is: either way there is nobody to answer, or nothing to say.
      () => incoming.socket.destroy(),
    );
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;

  return {
    urlFor: (caller) => `http://127.0.0.1:${port}/${caller}/`,
    inject: (pattern, act) => {
      const fault = { pattern, act, hits: 0, remove: () => void faults.delete(fault) };
      faults.add(fault);
      return fault;
    },
    clear: () => faults.clear(),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      agent.destroy();
    },
  };
}

/** The first two parts of the path name the caller; the rest is what the engine knows. */
function callerOf(url: string): { from: string; pid: number; path: string } {
  const [, from = '', pid = '', rest = ''] = /^\/([^/]*)\/(\d*)(\/.*)?$/.exec(url) ?? [];
  return { from, pid: Number(pid), path: rest === '' ? '/' : rest };
}

/** A JSON protocol says it in a header; Lambda's Invoke is known by its path. */
function actionOf(incoming: IncomingMessage, path: string): string {
  const target = incoming.headers['x-amz-target'];
  if (typeof target === 'string') return target.slice(target.lastIndexOf('.') + 1);
  return /\/invocations(\?|$)/.test(path) ? 'Invoke' : `${incoming.method} ${path}`;
}

function parsed(body: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function matches<Caller extends string>(
  { from, action, where, times }: CallPattern<Caller>,
  call: Call<Caller>,
  hits: number,
): boolean {
  if (times !== undefined && hits >= times) return false;
  if (from !== undefined && from !== call.from) return false;
  if (action !== undefined && action !== call.action) return false;
  return where?.(call) ?? true;
}

interface Question {
  readonly agent: Agent;
  readonly endpoint: string;
  readonly incoming: IncomingMessage;
  readonly path: string;
  readonly body: string;
}

async function ask({ agent, endpoint, incoming, path, body }: Question): Promise<Answer> {
  const { hostname, port, host } = new URL(endpoint);
  const headers = { ...incoming.headers, host, 'content-length': String(Buffer.byteLength(body)) };
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { agent, hostname, port, path, method: incoming.method, headers },
      (response) => {
        text(response).then((answer) => {
          const { 'transfer-encoding': _chunked, connection: _ours, ...kept } = response.headers;
          resolve({ status: response.statusCode ?? 502, headers: kept, body: answer });
        }, reject);
      },
    );
    outgoing.once('error', reject);
    outgoing.end(body);
  });
}
