import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import type { BacklogHistory } from '../../deployment/resources.ts';
import type { RecentMessage } from './recent-messages.ts';

/** The history of a queue of which nothing is known. */
export const NO_HISTORY: BacklogHistory = { waiting: [], agesMs: [] };

/** A backlog must not have been larger within this time, and must be known for this long, to be rising. */
const RISING_MS = 5 * MINUTE_MS;
const KNOWN_MS = 2 * MINUTE_MS;

/** Younger messages are never late: Lambda adds pollers to a queue over minutes, and SQS's counts lag by about one. */
const LATE_MIN_MS = 2 * MINUTE_MS;

/** Only older ages are usual: a backlog that grows now must not make itself usual. */
const BEFORE_MS = 10 * MINUTE_MS;

/** Without ages of the queue: this many times the wait that a quarter of the sampled messages did not exceed. */
const USUAL_WAITS = 3;

/** Returns true if no earlier count of the last minutes is above the present one. A burst that is being worked off falls. */
export function isRising(history: BacklogHistory, waiting: number, now: number): boolean {
  const recent = history.waiting.filter(({ at }) => at >= now - RISING_MS);
  return recent.some(({ at }) => at <= now - KNOWN_MS) && recent.every(({ value }) => value <= waiting);
}

/**
 * Returns the age that a consumer's oldest message usually does not exceed, milliseconds: the highest of its queue in the last 3 hours,
 * or, without such a metric, from the messages that it has processed in the last hour. `undefined` if it has neither.
 */
export function usualAgeMs(
  { agesMs }: BacklogHistory,
  recent: readonly RecentMessage[],
  now: number,
): number | undefined {
  const ages = agesMs.filter(({ at }) => at < now - BEFORE_MS).map(({ value }) => value);
  if (ages.length > 0) return Math.max(LATE_MIN_MS, ...ages);
  const waits = recent
    .flatMap(({ publishedAt, processedAt }) => (processedAt === undefined ? [] : [processedAt - publishedAt]))
    .sort((a, b) => a - b);
  const quarter = waits[Math.floor(waits.length / 4)];
  return quarter === undefined ? undefined : Math.max(LATE_MIN_MS, USUAL_WAITS * quarter);
}

/** Remembers the counts of queues, of which CloudWatch has no history yet, or a local engine none. */
export interface BacklogMemory {
  note(queueUrl: string, waiting: number, now: number): void;
  /** Adds the counts to a history. */
  with(queueUrl: string, history: BacklogHistory): BacklogHistory;
}

/** Creates a memory for a status that is shown continuously. */
export function createBacklogMemory(): BacklogMemory {
  const counts = new Map<string, BacklogHistory['waiting']>();
  const of = (queueUrl: string) => counts.get(queueUrl) ?? [];
  return {
    note: (queueUrl, value, now) =>
      counts.set(queueUrl, [...of(queueUrl).filter(({ at }) => at >= now - RISING_MS), { at: now, value }]),
    with: (queueUrl, history) => ({ ...history, waiting: [...history.waiting, ...of(queueUrl)] }),
  };
}
