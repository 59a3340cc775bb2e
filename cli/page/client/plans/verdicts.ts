import type { RedriveVerdict } from '../../../reports/dead-letters/redrive-plan.ts';
import type { PlanDocument } from '../../server/protocol.ts';
import { errorText, groupsOf, type StateName } from '../frame/format.ts';

/** A verdict or an outcome in words. */
export interface VerdictWords {
  readonly is: StateName;
  readonly label: string;
  /** The effect on these dead letters, and the operator's next step. */
  readonly todo: string;
}

/** The words of each verdict, in the order in which a plan shows them. */
export const VERDICTS: Readonly<Record<RedriveVerdict, VerdictWords>> = {
  runs: { is: 'ok', label: 'would run', todo: 'Redriven: 1 first, then 10, then the rest.' },
  handled: {
    is: 'ok',
    label: 'already handled',
    todo: 'Its message is processed or discarded. The dead letter is deleted.',
  },
  fails: {
    is: 'broken',
    label: 'would fail',
    todo: 'Stays: the deployed code refuses it. Deploy code that accepts it, resend it with other data, or discard it.',
  },
  superseded: {
    is: 'look',
    label: 'superseded',
    todo: 'Stays: a later number of its aggregate was applied, or its own passed over, so it would not run. Publish its change under the next number, or discard it.',
  },
  unsent: {
    is: 'look',
    label: 'may be unsent',
    todo: 'Stays: its consumer has not received the event that replaces it. Resend it with the same data, or with other data.',
  },
  'too-old': {
    is: 'look',
    label: 'too old',
    todo: 'Stays: it may have run before its row expired. Open the event for the command that allows or resolves it.',
  },
  'out-of-order': {
    is: 'look',
    label: 'out of order',
    todo: 'Stays: it would wait for an earlier number of its aggregate and be rejected again. Redrive or skip that number first.',
  },
  busy: {
    is: 'busy',
    label: 'busy',
    todo: 'Stays: a worker holds it, or a retry is due soon. Plan again in a minute.',
  },
  unreadable: {
    is: 'broken',
    label: 'unreadable',
    todo: 'Stays: its row cannot be read. Open the event to see why.',
  },
  'row-deleted': {
    is: 'broken',
    label: 'row deleted',
    todo: 'Stays: its row was deleted by hand, so which side effects have happened is unknown. Ask their providers.',
  },
};

/** The verdicts of a DEAD event and of a stream batch, which no consumer runs. */
const RUNS_OF: Readonly<Record<string, VerdictWords>> = {
  dead: {
    is: 'ok',
    label: 'would publish',
    todo: 'Published again: 1 first, then 10, then the rest.',
  },
  stream: {
    is: 'ok',
    label: 'would be swept',
    todo: 'The minutes of its events are swept: 1 batch first, then 10, then the rest.',
  },
};

/** The words of a verdict of a redrive. @param source - of the dead letter */
export function verdictWords(verdict: RedriveVerdict, source: string): VerdictWords {
  const words = VERDICTS[verdict];
  if (verdict === 'runs') return RUNS_OF[source] ?? words;
  return verdict === 'handled' && source === 'dead'
    ? { ...words, todo: 'It is published or discarded. Nothing changes.' }
    : words;
}

/** The effect of a discard on a dead letter. @param source - of the dead letter */
export function discardedText(source: string): string {
  if (source === 'dead') return 'Never published.';
  if (source === 'stream') return 'Its dead letter is deleted. The sweep still publishes its events.';
  return 'Never runs again. A later delivery is absorbed.';
}

/** The outcome of a planned discard in words; `discard` is the plan's own. */
const DISCARD_VERDICTS: Readonly<Record<string, VerdictWords>> = {
  discard: { is: 'look', label: 'discarded', todo: discardedText('') },
  'discard-replacement': {
    is: 'look',
    label: 'replacement discarded',
    todo: 'Its consumer has not received the event that replaces it. That event is discarded, and never runs.',
  },
  handled: VERDICTS.handled,
  reject: {
    is: 'look',
    label: 'rejected',
    todo: "The handler's rejected function commits its events. Never runs again. A later delivery is absorbed.",
  },
  unsent: VERDICTS.unsent,
  busy: VERDICTS.busy,
  unreadable: VERDICTS.unreadable,
  'not-rejectable': {
    is: 'look',
    label: 'not rejectable',
    todo: 'Stays: it cannot be rejected. Remove the reason, or discard it without the rejection.',
  },
  'row-deleted': {
    ...VERDICTS['row-deleted'],
    todo: 'Stays: its row was deleted by hand, so which side effects have happened is unknown. Read the logs and ask the providers, then tick the box.',
  },
  'effects-unchecked': {
    is: 'look',
    label: 'effects to check',
    todo: 'Stays: its side effects have happened, or may have. Ask their providers, then tick the box.',
  },
};

/** The outcomes of a planned discard that an operator can change by checking side effects. */
const TO_CHECK: ReadonlySet<string> = new Set(['effects-unchecked', 'row-deleted']);

/** True if dead letters of a plan stay until their side effects are checked. */
export function hasUnchecked(plan: PlanDocument): boolean {
  return plan.kind === 'discard' && plan.document.deadLetters.some(({ outcome }) => TO_CHECK.has(outcome));
}

/** The part of a plan with one verdict. */
export interface PlanGroup extends VerdictWords {
  readonly count: number;
  /** The errors of the deployed code, the most frequent first, with their counts. */
  readonly reasons: readonly (readonly [string, number])[];
}

/** The labels in the order in which a plan shows them. */
const ORDER = [VERDICTS, RUNS_OF, DISCARD_VERDICTS].flatMap((all) =>
  Object.values(all).map(({ label }) => label),
);

/**
 * The groups of a plan, in the order in which its command lists verdicts.
 *
 * @param ids - only these dead letters. @default all of the document
 */
export function planGroups(plan: PlanDocument, ids?: readonly string[]): PlanGroup[] {
  const groups = groupsOf(plannedOf(plan, ids), ({ words }) => words.label);
  const rank = (label: string) => (ORDER.includes(label) ? ORDER.indexOf(label) : ORDER.length);
  return [...groups.values()]
    .flatMap((group) => group.slice(0, 1).map(({ words }) => ({ ...words, ...counted(group) })))
    .sort((a, b) => rank(a.label) - rank(b.label));
}

/** A dead letter or event of a plan. */
interface Planned {
  readonly words: VerdictWords;
  /** Empty without one. */
  readonly reason: string;
}

function counted(group: readonly Planned[]): Pick<PlanGroup, 'count' | 'reasons'> {
  const found = group.map(({ reason }) => reason).filter((reason) => reason !== '');
  const reasons = [...groupsOf(found, (reason) => reason)].map(
    ([reason, all]) => [reason, all.length] as const,
  );
  return { count: group.length, reasons: reasons.sort(([, a], [, b]) => b - a) };
}

function plannedOf(plan: PlanDocument, ids?: readonly string[]): Planned[] {
  const isWanted = ({ id }: { readonly id: string }) => ids === undefined || ids.includes(id);
  switch (plan.kind) {
    case 'redrive':
      return plan.document.deadLetters.filter(isWanted).map((deadLetter) => ({
        words: verdictWords(deadLetter.verdict ?? 'unreadable', plan.document.source),
        reason: errorText(deadLetter),
      }));
    case 'discard':
      return plan.document.deadLetters.filter(isWanted).map(({ outcome, ...entry }) => ({
        words: {
          ...(DISCARD_VERDICTS[outcome] ?? { is: 'look', label: outcome, todo: '' }),
          ...(outcome === 'discard' && { todo: discardedText(plan.document.source) }),
        },
        reason: 'message' in entry && typeof entry.message === 'string' ? entry.message : '',
      }));
    case 'repair':
      return (plan.document.repair?.events ?? []).map(({ consumer, outcome, why }) => ({
        words:
          outcome === 'unsent'
            ? { is: 'look', label: 'not sent', todo: 'It cannot be sent again.' }
            : { is: 'ok', label: `sent to ${consumer}`, todo: `Only ${consumer} receives it.` },
        reason: why ?? '',
      }));
    case 'resend': {
      const { consumer, verdict } = plan.document;
      const todo = verdict === 'runs' ? `Sent to ${consumer} only, as a new event.` : 'Not sent.';
      return [{ words: { ...VERDICTS[verdict], todo }, reason: errorText(plan.document) }];
    }
  }
}
