import type { WhyDocument } from '../documents.ts';

/** An event of a {@link WhyDocument}. */
export type EventReport = WhyDocument['events'][number];

const OPTIONS = /(?: --(?:stage|stack|profile|region|endpoint) \S+)+$/;

/**
 * Another command of `mailroom` with the options of a reading's command that select the Mailroom.
 *
 * @example
 * ```ts
 * commandLike('npx cdk-mailroom why 42 --stage dev', 'logs 01a1fe32-7358'); // 'npx cdk-mailroom logs 01a1fe32-7358 --stage dev'
 * ```
 */
export function commandLike(command: string, words: string): string {
  return `npx cdk-mailroom ${words}${OPTIONS.exec(command)?.[0] ?? ''}`;
}
