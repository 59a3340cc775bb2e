import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * The kind of server at an endpoint: one of the engines, something else, something that accepts connections but has not answered
 * (such as a starting engine), or nothing.
 */
export type EngineKind = 'ministack' | 'localstack' | 'external' | 'silent' | 'nothing';

const PROBE_TIMEOUT_MS = 3_000;
const POLL_EVERY_MS = 50;

/** The interval between progress lines while waiting for an engine. */
const TELL_EVERY_MS = 10_000;

/** Identifies the server at an endpoint. An engine has a health page; any other server that answers is external. */
export async function identify(endpoint: string): Promise<EngineKind> {
  const [ministack, localstack] = await Promise.all([
    healthOf(`${endpoint}/_ministack/health`),
    healthOf(`${endpoint}/_localstack/health`),
  ]);
  if (isHealthy(ministack)) return 'ministack';
  if (isHealthy(localstack)) return 'localstack';
  if (ministack !== undefined || localstack !== undefined) return 'external';
  return (await accepts(new URL(endpoint))) ? 'silent' : 'nothing';
}

/** Options of {@link awaitAnswer}. */
export interface Patience {
  /** The longest time until a server that accepts connections answers: a cold LocalStack takes 7 s on two cores. @default 2 minutes */
  readonly answerMs?: number | undefined;
  /** Receives a line when the wait begins, and every 10 s. */
  readonly onProgress?: ((line: string) => void) | undefined;
}

/** Like {@link identify}, but waits for a server that accepts connections and has not answered yet. */
export async function awaitAnswer(
  endpoint: string,
  { answerMs = 120_000, onProgress }: Patience,
): Promise<EngineKind> {
  const startedAt = Date.now();
  let tellAt = 0;
  const answer = await poll(answerMs, async () => {
    const found = await identify(endpoint);
    if (found !== 'silent') return found;
    const waitedMs = Date.now() - startedAt;
    if (waitedMs >= tellAt) {
      tellAt = waitedMs + TELL_EVERY_MS;
      onProgress?.(
        `Waiting for ${endpoint} to answer: ${Math.round(waitedMs / 1_000)} of at most ${answerMs / 1_000} s`,
      );
    }
    return undefined;
  });
  return answer ?? 'silent';
}

/** Returns true if the MiniStack at an endpoint was started with this mark. */
export async function answersAs(endpoint: string, mark: string): Promise<boolean> {
  return (await healthOf(`${endpoint}/_ministack/health`))?.edition === mark;
}

/**
 * Polls until the answer is not undefined.
 *
 * @param deadlineMs - the time limit in milliseconds
 * @returns the answer, or undefined after the deadline
 */
export async function poll<T>(
  deadlineMs: number,
  ask: () => Promise<T | undefined> | T | undefined,
): Promise<T | undefined> {
  const until = Date.now() + deadlineMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined || Date.now() >= until) return answer;
    await delay(POLL_EVERY_MS);
  }
}

/** The last lines of a log file, indented for an error message. */
export function tail(path: string, lines = 20): string {
  try {
    return lastLines(readFileSync(path, 'utf8'), lines);
  } catch {
    return '  (no log)';
  }
}

/** The last non-empty lines of a text, indented for an error message. */
export function lastLines(text: string, lines = 20): string {
  const kept = text.split('\n').filter((line) => line.trim() !== '');
  return kept
    .slice(-lines)
    .map((line) => `  ${line.trimEnd()}`)
    .join('\n');
}

type Health = Readonly<Record<string, unknown>>;

/** An engine's health page lists its services. */
function isHealthy(health: Health | undefined): boolean {
  return health !== undefined && 'services' in health;
}

/** The health page; empty for any other answer, `undefined` without one. */
async function healthOf(url: string): Promise<Health | undefined> {
  const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
  const response = await fetch(url, { signal }).catch(() => undefined);
  if (response === undefined) return undefined;
  const body: unknown = await response.json().catch(() => undefined);
  return response.ok && typeof body === 'object' && body !== null ? (body as Health) : {};
}

async function accepts(url: URL): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect({
      host: url.hostname,
      port: Number(url.port || (url.protocol === 'https:' ? 443 : 80)),
    });
    const settle = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(PROBE_TIMEOUT_MS, () => settle(false));
    socket.once('connect', () => settle(true));
    socket.once('error', () => settle(false));
  });
}
