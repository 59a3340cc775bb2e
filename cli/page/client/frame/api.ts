import { createParser } from 'eventsource-parser';
import { errorHelp } from '../../../../lambdas/runtime/base/documentation.ts';
import type {
  ApplyRequest,
  DemoFault,
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
  /** The address of the code's explanation; absent for a code of AWS. */
  readonly help: string | undefined;

  constructor({ code, message, help }: Refusal) {
    super(message);
    this.code = code;
    this.help = help;
  }
}

/** An error as a {@link RefusedError}. */
export function refused(error: unknown): RefusedError {
  if (error instanceof RefusedError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new RefusedError({ code: 'DEFECT', message, help: errorHelp('DEFECT') });
}

/** The error of a command that failed or was refused. */
export function errorOf({ error }: { readonly error: Refusal | null }): RefusedError | null {
  return error === null ? null : new RefusedError(error);
}

/** The page's requests. Each rejects with a {@link RefusedError}. */
export type Api = ReturnType<typeof createApi>;

/** Exchanges the one-time token of the redirect file for the key. */
export async function exchangeToken(token: string): Promise<string> {
  const { key } = await send<KeyResponse>('/api/key', posted({ token } satisfies KeyRequest));
  return key;
}

/** Creates the page's requests. @param key - see {@link exchangeToken} */
export function createApi(key: string) {
  const headers = { Authorization: `Bearer ${key}` };
  const get = <T>(path: string, signal: AbortSignal | null = null) => send<T>(path, { headers, signal });
  const post = <T>(path: string, body: unknown = {}) => send<T>(path, posted(body, headers));
  const part = encodeURIComponent;
  return {
    mailroom: () => get<MailroomInfo>('/api/mailroom'),
    /** Runs a reading command. */
    read: <Name extends ReadingName>(
      name: Name,
      parameters: ReadingParameters[Name],
      signal?: AbortSignal,
    ): Promise<Reading<Name>> => {
      const set = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== '');
      return get(`/api/readings/${part(name)}?${new URLSearchParams(set as string[][])}`, signal);
    },
    plan: (request: PlanRequest) => post<Plan>('/api/plans', request),
    apply: (planId: string, request: ApplyRequest) => post<Run>(`/api/plans/${part(planId)}/apply`, request),
    stop: (runId: string) => post<Run>(`/api/runs/${part(runId)}/stop`),
    fault: (name: DemoFault['name'], change: 'break' | 'repair') =>
      post(`/api/demo/faults/${part(name)}/${change}`),
    demoRun: (change: 'end' | 'start') => post(`/api/demo/${change}`),
    /** Receives the live stream until it ends or the signal aborts. */
    live: async (receive: (message: LiveMessage) => void, signal: AbortSignal) =>
      readLive(await request('/api/live', { headers, signal }), receive),
  };
}

async function readLive({ body }: Response, receive: (message: LiveMessage) => void): Promise<void> {
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
      code: 'NO_SERVER',
      help: errorHelp('NO_SERVER'),
      message:
        "The web console's server is not responding. Start `mailroom ui`, or the demo, again in the terminal.",
    });
  });
  if (response.ok) return response;
  throw new RefusedError(await refusalOf(response));
}

async function refusalOf(response: Response): Promise<Refusal> {
  try {
    const refusal: Partial<Refusal> = await response.json();
    if (refusal.code !== undefined && refusal.message !== undefined)
      return { code: refusal.code, message: refusal.message, help: refusal.help };
  } catch {
    // not an answer of this server
  }
  return { code: `HTTP_${response.status}`, message: `The server answered ${response.status}.` };
}

function posted(body: unknown, headers: Readonly<Record<string, string>> = {}): RequestInit {
  return {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  };
}
