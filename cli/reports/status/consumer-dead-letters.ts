import type { SourceStatus } from './source-status.ts';

/** The dead-letter sources of a consumer that have dead letters: messages that it rejected, and events that its rule could not deliver. */
export function deadLetterSourcesOf(
  sources: readonly SourceStatus[],
  consumer: string,
): readonly SourceStatus[] {
  return sources.filter(
    ({ source, count }) => count > 0 && (source === `consumer:${consumer}` || source === `rule:${consumer}`),
  );
}

/** The number of dead letters of a consumer, in both of its queues. */
export function deadLettersOf(sources: readonly SourceStatus[], consumer: string): number {
  return deadLetterSourcesOf(sources, consumer).reduce((sum, { count }) => sum + count, 0);
}
