import { createParser } from 'eventsource-parser';
import type {
  ApplyRequest,
  DemoFault,
  DemoState,
  KeyRequest,
  KeyResponse,
  LiveMessage,
  MailroomInfo,
  Plan,
  PlanRequest,
  Run,
} from '../../server/protocol.ts';
import type { Refusal } from '../../server/quiet-run.ts';
import type { Reading, ReadingName, ReadingParameters } from '../../server/readings.ts';

/** A request that the server refused, or that did not reach it (`NO_SERVER`). */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  readonly code: string;

  constructor({ code, message }: Refusal) {
    super(message);
    this.code = code;
  }
}

/** An error as a {@link RefusedError}. */
export function refused(error: unknown): RefusedError {
  if (error instanceof RefusedError) return error;
  return new RefusedError({ code: 'PAGE', message: error instanceof Error ? error.message : String(error) });
}

/** The error of a command that failed or was refused. */
export function errorOf({ error }: { readonly error: Refusal | null }): RefusedError | null {
  return error === null ? null : new RefusedError(error);
}

/** The code of a request that got no answer. */
const NO_SERVER = 'NO_SERVER';

/** The page's requests. Each rejects with a {@link RefusedError}. */
export interface Api {
  mailroom(): Promise<MailroomInfo>;
  /** Runs a reading command. */
  read<Name extends ReadingName>(
    name: Name,
    parameters: ReadingParameters[Name],
    signal?: AbortSignal,
  ): Promise<Reading<Name>>;
  plan(request: PlanRequest): Promise<Plan>;
  apply(planId: string, request: ApplyRequest): Promise<Run>;
  stop(runId: string): Promise<Run>;
  demo(): Promise<DemoState>;
  fault(name: DemoFault['name'], change: 'break' | 'repair'): Promise<DemoState>;
  demoRun(change: 'end' | 'start'): Promise<DemoState>;
  /** Receives the live stream until it ends or the signal aborts. */
  live(receive: (message: LiveMessage) => void, signal: AbortSignal): Promise<void>;
}

/** Exchanges the one-time token of the redirect file for the key. */
export async function exchangeToken(token: string): Promise<string> {
  const { key } = await send<KeyResponse>('/api/key', {
    method: 'POST',
    ...json({ token } satisfies KeyRequest),
  });
  return key;
}

/** Creates the page's requests. @param key - see {@link exchangeToken} */
export function createApi(key: string): Api {
  const get = <T>(path: string, signal?: AbortSignal) =>
    send<T>(path, { headers: bearer(key), ...(signal === undefined ? {} : { signal }) });
  const post = <T>(path: string, body: unknown = {}) => {
    const { headers, ...rest } = json(body);
    return send<T>(path, { method: 'POST', headers: { ...headers, ...bearer(key) }, ...rest });
  };
  const part = encodeURIComponent;
  return {
    mailroom: () => get('/api/mailroom'),
    read: (name, parameters, signal) => {
      const set = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== '');
      return get(`/api/readings/${part(name)}?${new URLSearchParams(set as string[][])}`, signal);
    },
    plan: (request) => post('/api/plans', request),
    apply: (planId, request) => post(`/api/plans/${part(planId)}/apply`, request),
    stop: (runId) => post(`/api/runs/${part(runId)}/stop`),
    demo: () => get('/api/demo'),
    fault: (name, change) => post(`/api/demo/faults/${part(name)}/${change}`),
    demoRun: (change) => post(`/api/demo/${change}`),
    live: (receive, signal) => readLive(key, receive, signal),
  };
}

async function readLive(
  key: string,
  receive: (message: LiveMessage) => void,
  signal: AbortSignal,
): Promise<void> {
  const { body } = await request('/api/live', { headers: bearer(key), signal });
  if (body === null) return;
  const parser = createParser({ onEvent: ({ data }) => receive(JSON.parse(data)) });
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    parser.feed(decoder.decode(value, { stream: true }));
  }
}

async function send<T>(path: string, init: RequestInit): Promise<T> {
  return (await request(path, init)).json();
}

async function request(path: string, init: RequestInit): Promise<Response> {
  const response = await fetch(path, { ...init, cache: 'no-store', credentials: 'omit' }).catch((error) => {
    if (init.signal?.aborted === true) throw error;
    throw new RefusedError({
      code: NO_SERVER,
      message:
        "The page's server is not responding. Start `mailroom ui`, or the demo, again in the terminal.",
    });
  });
  if (response.ok) return response;
  throw new RefusedError(await refusalOf(response));
}

async function refusalOf(response: Response): Promise<Refusal> {
  try {
    const refusal: Partial<Refusal> = await response.json();
    if (refusal.code !== undefined && refusal.message !== undefined)
      return { code: refusal.code, message: refusal.message };
  } catch {
    // not an answer of this server
  }
  return { code: `HTTP_${response.status}`, message: `The server answered ${response.status}.` };
}

function bearer(key: string): Record<string, string> {
  return { Authorization: `Bearer ${key}` };
}

function json(body: unknown): { readonly headers: Record<string, string>; readonly body: string } {
  return { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
}
