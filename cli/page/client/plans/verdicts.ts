import type { RedriveVerdict } from '../../../reports/dead-letters/redrive-plan.ts';
import {
  plannedDiscardWords,
  VERDICT_LABELS,
  type VerdictWords,
  verdictWords,
} from '../../../reports/dead-letters/verdict-words.ts';
import type { PlanDocument } from '../../server/protocol.ts';
import { errorText, groupsOf, type StateName } from '../frame/format.ts';

/** A verdict or an outcome as the page shows it. */
export interface ShownVerdict extends VerdictWords {
  readonly is: StateName;
}

/** The signs of verdicts and of the outcomes of a planned discard. Others require a look. */
const SIGNS: Readonly<Record<string, StateName>> = {
  runs: 'ok',
  handled: 'ok',
  fails: 'broken',
  busy: 'busy',
  unreadable: 'broken',
  'row-deleted': 'broken',
};

/** The verdicts whose next step is a command that the event's screen shows. */
export const BY_COMMAND: ReadonlySet<string> = new Set<RedriveVerdict>(['too-old', 'row-deleted']);

/** A verdict of a redrive. @param source - of the dead letter */
export function shownVerdict(verdict: RedriveVerdict, source: string, count = 1): ShownVerdict {
  const words = verdictWords(verdict, source, count);
  const todo = `${words.todo}.${BY_COMMAND.has(verdict) ? ' Open the event for the command.' : ''}`;
  return { ...words, todo, is: SIGNS[verdict] ?? 'look' };
}

/** The outcome of a planned discard. */
function shownDiscard(outcome: string, source: string): ShownVerdict {
  const words = plannedDiscardWords(outcome, source);
  return { ...words, todo: sentence(words), is: SIGNS[outcome] ?? 'look' };
}

/** The effect and the next step, with a full stop; empty for an unknown outcome. */
export function sentence({ todo }: VerdictWords): string {
  return todo === '' ? '' : `${todo}.`;
}

/** The outcomes of a planned discard that an operator can change by checking side effects. */
const TO_CHECK: ReadonlySet<string> = new Set(['effects-unchecked', 'row-deleted']);

/** True if dead letters of a plan stay until their side effects are checked. */
export function hasUnchecked(plan: PlanDocument): boolean {
  return plan.kind === 'discard' && plan.document.deadLetters.some(({ outcome }) => TO_CHECK.has(outcome));
}

/** The part of a plan with one verdict. */
export interface PlanGroup extends ShownVerdict {
  readonly count: number;
  /** The errors of the deployed code, the most frequent first, with their counts. */
  readonly reasons: readonly (readonly [string, number])[];
}

/** The verdicts in the order in which a plan shows them; other outcomes of a discard come last. */
const ORDER: readonly string[] = [
  ...Object.keys(VERDICT_LABELS),
  'repair',
  'discard',
  'discard-replacement',
  'reject',
];

/**
 * The groups of a plan, in the order in which its command lists verdicts.
 *
 * @param ids - only these dead letters. @default all of the document
 */
export function planGroups(plan: PlanDocument, ids?: readonly string[]): PlanGroup[] {
  const groups = groupsOf(plannedOf(plan, ids), ({ verdict }) => verdict);
  const rank = (verdict: string) => (ORDER.includes(verdict) ? ORDER.indexOf(verdict) : ORDER.length);
  return [...groups]
    .sort(([a], [b]) => rank(a) - rank(b))
    .flatMap(([, group]) =>
      group.slice(0, 1).map(({ shown }) => ({ ...shown(group.length), ...counted(group) })),
    );
}

/** A dead letter or event of a plan. */
interface Planned {
  /** Its verdict or outcome. */
  readonly verdict: string;
  readonly shown: (count: number) => ShownVerdict;
  /** Empty without one. */
  readonly reason: string;
}

/** The outcome of a part of a planned repair. @param consumer - `null` for an outbox row */
function shownRepair(outcome: string, consumer: string | null): ShownVerdict {
  switch (outcome) {
    case 'unsent':
      return { is: 'look', label: 'not sent', todo: 'It cannot be sent again.' };
    case 'unrepaired':
      return { is: 'look', label: 'left as it is', todo: 'Its row cannot be put right here.' };
    case 'make-due':
      return { is: 'ok', label: 'made due', todo: 'The sweep publishes it within minutes.' };
    case 'list':
      return { is: 'ok', label: `listed at ${consumer}`, todo: 'Messages shows it as rejected.' };
    default:
      return { is: 'ok', label: `sent to ${consumer}`, todo: `Only ${consumer} receives it.` };
  }
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
      return plan.document.deadLetters.filter(isWanted).map((deadLetter) => {
        const verdict = deadLetter.verdict ?? 'unreadable';
        const shown = (count: number) => shownVerdict(verdict, plan.document.source, count);
        return { verdict, shown, reason: errorText(deadLetter) };
      });
    case 'discard':
      return plan.document.deadLetters.filter(isWanted).map(({ outcome, ...entry }) => ({
        verdict: outcome,
        shown: () => shownDiscard(outcome, plan.document.source),
        reason: 'message' in entry && typeof entry.message === 'string' ? entry.message : '',
      }));
    case 'repair':
      return (plan.document.repair?.events ?? []).map(({ consumer, outcome, why }) => {
        const shown = shownRepair(outcome, consumer);
        return { verdict: shown.label, shown: () => shown, reason: why ?? '' };
      });
    case 'resend': {
      const { consumer, verdict, source } = plan.document;
      const todo = verdict === 'runs' ? `Sent to ${consumer} only, as a new event.` : 'Not sent.';
      const shown = () => ({ ...shownVerdict(verdict, source), todo });
      return [{ verdict, shown, reason: errorText(plan.document) }];
    }
  }
}
