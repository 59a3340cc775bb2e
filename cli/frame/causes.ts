import { duration, printable, table } from './output.ts';

/** Something that failed of a cause, at a time (epoch milliseconds). */
export interface Failure {
  readonly fingerprint: string | null;
  readonly eventId: string;
  readonly at: number;
}

/** Failures of one cause. Times are epoch milliseconds. */
export interface Cause {
  readonly fingerprint: string | null;
  readonly count: number;
  readonly oldestAt: number;
  readonly newestAt: number;
  /** The event id of the newest. */
  readonly example: string;
}

/** Failures by cause, the most frequent first. */
export function byCause(failures: readonly Failure[]): Cause[] {
  const causes = new Map<string | null, Cause>();
  for (const { fingerprint, eventId, at } of failures) {
    const known = causes.get(fingerprint) ?? { count: 0, oldestAt: at, newestAt: at, example: eventId };
    causes.set(fingerprint, {
      fingerprint,
      count: known.count + 1,
      oldestAt: Math.min(known.oldestAt, at),
      newestAt: Math.max(known.newestAt, at),
      example: at >= known.newestAt ? eventId : known.example,
    });
  }
  return [...causes.values()].sort((a, b) => b.count - a.count || b.newestAt - a.newestAt);
}

/** Causes for people. */
export function causesText(causes: readonly Cause[], now: number): string {
  return table(
    ['count', 'oldest', 'newest', 'cause', 'an example'],
    causes.map(({ fingerprint, count, oldestAt, newestAt, example }) => [
      count,
      `${duration(now - oldestAt)} ago`,
      `${duration(now - newestAt)} ago`,
      printable(fingerprint ?? 'not known'),
      example,
    ]),
  );
}
