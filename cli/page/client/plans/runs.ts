import { isObject } from '../../../../lambdas/runtime/base/json.ts';
import { outcomeWords, untriedWords } from '../../../reports/dead-letters/verdict-words.ts';
import { groupsOf, type StateName, WORST_FIRST } from '../frame/format.ts';
import { type ShownVerdict, sentence } from './verdicts.ts';

/** The signs of outcomes. Others require a look. */
const SIGNS: Readonly<Record<string, StateName>> = {
  processed: 'ok',
  deleted: 'ok',
  discarded: 'ok',
  repaired: 'ok',
  rejected: 'ok',
  handled: 'ok',
  sent: 'ok',
  'failed-again': 'broken',
  failed: 'broken',
  untried: 'idle',
  kept: 'idle',
  unreadable: 'broken',
  'row-deleted': 'broken',
};

/** An outcome of a run. @param source - of its dead letter, if it has one */
export function shownOutcome(outcome: string, source = ''): ShownVerdict {
  const words = outcomeWords(outcome, source);
  return { ...words, todo: sentence(words), is: SIGNS[outcome] ?? 'look' };
}

/** The dead-letter source in the document of a run; empty without one. */
export function sourceOf(document: unknown): string {
  return isObject(document) ? (text(document.source) ?? '') : '';
}

/** A dead letter or event that a run changed, or left. */
export interface RunResult {
  readonly id: string;
  readonly eventId: string | null;
  readonly outcome: string;
  /** An error, or why it was left. */
  readonly detail: string | null;
}

/** The results in the document of a run, of any kind; empty without one. */
export function resultsOf(document: unknown): RunResult[] {
  if (!isObject(document)) return [];
  if (text(document.newEventId) !== null)
    return [resultOf({ ...document, id: document.newEventId, eventId: document.newEventId })];
  const listed = isObject(document.repair) ? document.repair.events : document.deadLetters;
  return Array.isArray(listed) ? listed.filter(isObject).map(resultOf) : [];
}

function resultOf(entry: Readonly<Record<string, unknown>>): RunResult {
  const { id, eventId, consumer } = entry;
  return {
    id: text(id) ?? `${text(eventId) ?? '?'} ${text(consumer) ?? ''}`.trim(),
    eventId: text(eventId),
    outcome: text(entry.outcome) ?? '?',
    detail: text(entry.failedAgain) ?? text(entry.message) ?? text(entry.why),
  };
}

/** The dead letters of one cause with one outcome, in the document of a redrive. */
export interface CauseResult {
  readonly count: number;
  readonly outcome: string;
  /** Why they are dead letters. */
  readonly cause: string;
  /** The new failure, or why they were not tried; empty without one. */
  readonly now: string;
  /** The event id of one, or else the id of its dead letter. */
  readonly example: string;
}

/** The causes in the document of a redrive; empty for another change, and if all of one cause were processed. */
export function causesOf(document: unknown): CauseResult[] {
  const listed = isObject(document) && Array.isArray(document.causes) ? document.causes : [];
  const causes = listed.filter(isObject).map((entry) => {
    const [failedAgain, notTried] = [text(entry.failedAgain), text(entry.notTried)];
    return {
      count: typeof entry.count === 'number' ? entry.count : 0,
      outcome: text(entry.outcome) ?? '?',
      cause: text(entry.fingerprint) ?? '-',
      now: failedAgain ?? (notTried === null ? '' : untriedWords(notTried)),
      example: text(entry.example) ?? '?',
    };
  });
  return causes.length === 1 && causes[0]?.outcome === 'processed' ? [] : causes;
}

/** The command that comes after a run, if its document has one. */
export function nextOf(document: unknown): string | null {
  return isObject(document) ? text(document.next) : null;
}

/** The number of results with each outcome; those that require action first. */
export function outcomeCounts(results: readonly RunResult[]): (readonly [string, number])[] {
  const rank = (outcome: string) => WORST_FIRST.indexOf(shownOutcome(outcome).is);
  return [...groupsOf(results, ({ outcome }) => outcome)]
    .map(([outcome, all]) => [outcome, all.length] as const)
    .sort(([a], [b]) => rank(a) - rank(b));
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
