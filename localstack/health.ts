import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** What answers at an endpoint: one of the engines, something else that is listening, or nothing. */
export type Answer = 'ministack' | 'localstack' | 'foreign' | 'nothing';

const PROBE_TIMEOUT_MS = 2_000;
const POLL_EVERY_MS = 50;

/**
 * Asks what answers at an endpoint. An engine is known by its health page; whatever else accepts a connection
 * is foreign.
 */
export async function identify(endpoint: string): Promise<Answer> {
  if (await isHealthy(`${endpoint}/_ministack/health`)) return 'ministack';
  if (await isHealthy(`${endpoint}/_localstack/health`)) return 'localstack';
  return (await accepts(new URL(endpoint))) ? 'foreign' : 'nothing';
}

/** Whether the MiniStack at an endpoint is the one that was started with this mark. */
export async function answersAs(endpoint: string, mark: string): Promise<boolean> {
  return (await healthOf(`${endpoint}/_ministack/health`))?.edition === mark;
}

/** Whether anything at all answers HTTP at an endpoint, whatever it says. */
export async function answersHttp(endpoint: string): Promise<boolean> {
  try {
    await (await fetch(endpoint, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) })).arrayBuffer();
    return true;
  } catch {
    return false;
  }
}

/**
 * Asks again and again until the answer is something other than undefined.
 *
 * @param deadlineMs - how long to go on, milliseconds
 * @returns the answer, or undefined when the deadline has passed
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

/** The last lines of a log, indented for an error message. */
export function tail(path: string, lines = 20): string {
  try {
    return lastLines(readFileSync(path, 'utf8'), lines);
  } catch {
    return '  (no log)';
  }
}

/** The last lines of a text that are not empty, indented for an error message. */
export function lastLines(text: string, lines = 20): string {
  const kept = text.split('\n').filter((line) => line.trim() !== '');
  return kept
    .slice(-lines)
    .map((line) => `  ${line.trimEnd()}`)
    .join('\n');
}

async function isHealthy(url: string): Promise<boolean> {
  return (await healthOf(url)) !== undefined;
}

async function healthOf(url: string): Promise<Record<string, unknown> | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    const body: unknown = await response.json();
    if (!response.ok || typeof body !== 'object' || body === null) return undefined;
    return 'services' in body ? (body as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
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
