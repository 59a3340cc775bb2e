import { isObject } from '../../../../lambdas/runtime/base/json.ts';
import { groupsOf, WORST_FIRST } from '../frame/format.ts';
import { discardedText, type VerdictWords } from './verdicts.ts';

const OUTCOMES: Readonly<Record<string, VerdictWords>> = {
  processed: { is: 'ok', label: 'processed', todo: 'Done.' },
  deleted: { is: 'ok', label: 'deleted', todo: 'Its message was already handled.' },
  discarded: { is: 'ok', label: 'discarded', todo: discardedText('') },
  rejected: {
    is: 'ok',
    label: 'rejected',
    todo: "Its handler's rejected function has committed its events. Never runs again.",
  },
  handled: { is: 'ok', label: 'already handled', todo: 'Its dead letter was deleted.' },
  sent: { is: 'ok', label: 'sent', todo: 'Audit again in a few minutes.' },
  'failed-again': {
    is: 'broken',
    label: 'failed again',
    todo: 'The redrive stopped here. Fix the cause, then plan again.',
  },
  failed: {
    is: 'broken',
    label: 'failed',
    todo: 'The change of this one failed. Fix the cause, then plan again.',
  },
  superseded: {
    is: 'look',
    label: 'superseded',
    todo: 'It was discarded, replaced or passed over before it ran. Its dead letter stays. Open the event for details.',
  },
  waiting: {
    is: 'look',
    label: 'waiting',
    todo: 'Redriven, without a result yet. Open the event to see what it waits for.',
  },
  untried: { is: 'idle', label: 'not tried', todo: 'Still in the source.' },
  kept: { is: 'idle', label: 'kept', todo: 'It would not run, so it stays in the source.' },
  busy: { is: 'look', label: 'busy', todo: 'A worker holds it. Try again in a minute.' },
  unreadable: { is: 'broken', label: 'unreadable', todo: 'Its row cannot be read.' },
  'not-rejectable': {
    is: 'look',
    label: 'not rejectable',
    todo: 'Still in the source. The reason is beside each dead letter.',
  },
  'row-deleted': {
    is: 'broken',
    label: 'row deleted',
    todo: 'Its row was deleted by hand. Ask the providers of its side effects, then plan again.',
  },
  'effects-unchecked': {
    is: 'look',
    label: 'effects to check',
    todo: 'Its side effects have happened, or may have. Ask their providers, then plan again.',
  },
  changed: {
    is: 'look',
    label: 'changed since the plan',
    todo: 'Left alone. Read the dead letters again, then plan again.',
  },
  unsent: { is: 'look', label: 'not sent', todo: 'The reason is beside each event.' },
};

/** The words of an outcome. An outcome of a newer command keeps its own word. @param source - of its dead letter, if it has one */
export function outcomeWords(outcome: string, source = ''): VerdictWords {
  const words = OUTCOMES[outcome] ?? { is: 'look', label: outcome, todo: '' };
  if (outcome === 'discarded') return { ...words, todo: discardedText(source) };
  const [, done] = /^(dead|stream)$/.exec(source) ?? [];
  return outcome === 'processed' && done
    ? { ...words, label: done === 'dead' ? 'published' : 'swept' }
    : words;
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

/** The command that comes after a run, if its document has one. */
export function nextOf(document: unknown): string | null {
  return isObject(document) ? text(document.next) : null;
}

/** The number of results with each outcome; those that require action first. */
export function outcomeCounts(results: readonly RunResult[]): (readonly [string, number])[] {
  const rank = (outcome: string) => WORST_FIRST.indexOf(outcomeWords(outcome).is);
  return [...groupsOf(results, ({ outcome }) => outcome)]
    .map(([outcome, all]) => [outcome, all.length] as const)
    .sort(([a], [b]) => rank(a) - rank(b));
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
