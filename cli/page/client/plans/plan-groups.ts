import type { PlanDocument, PlanRequest } from '../../server/protocol.ts';
import { DISCARD_VERDICTS, VERDICTS, type VerdictWords } from './verdicts.ts';

/** The part of a plan with one verdict. */
export interface PlanGroup extends VerdictWords {
  readonly count: number;
  /** The errors of the deployed code, the most frequent first, with their counts. */
  readonly reasons: readonly (readonly [string, number])[];
}

/** A dead letter or event of a plan. */
interface Planned {
  readonly words: VerdictWords;
  readonly reason: string | null;
}

/**
 * The groups of a plan, in the order in which its command lists verdicts.
 *
 * @param ids - only these dead letters. @default all of the document
 */
export function planGroups(plan: PlanDocument, ids?: readonly string[]): PlanGroup[] {
  const planned = plannedOf(plan, ids);
  const order = [...Object.values(VERDICTS), ...Object.values(DISCARD_VERDICTS)];
  const groups = new Map<string, Planned[]>();
  for (const one of planned) {
    const group = groups.get(one.words.label);
    if (group === undefined) groups.set(one.words.label, [one]);
    else group.push(one);
  }
  return [...groups.values()]
    .flatMap((group) => (group[0] === undefined ? [] : [{ ...group[0].words, ...counted(group) }]))
    .sort((a, b) => rank(order, a) - rank(order, b));
}

function rank(order: readonly VerdictWords[], { label }: VerdictWords): number {
  const found = order.findIndex((words) => words.label === label);
  return found < 0 ? order.length : found;
}

function counted(group: readonly Planned[]): Pick<PlanGroup, 'count' | 'reasons'> {
  const reasons = new Map<string, number>();
  for (const { reason } of group) if (reason !== null) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  return { count: group.length, reasons: [...reasons].sort(([, a], [, b]) => b - a) };
}

function plannedOf(plan: PlanDocument, ids?: readonly string[]): Planned[] {
  const isWanted = ({ id }: { readonly id: string }) => ids === undefined || ids.includes(id);
  switch (plan.kind) {
    case 'redrive':
      return plan.document.deadLetters.filter(isWanted).map(({ verdict, code, message }) => ({
        words: VERDICTS[verdict ?? 'unreadable'],
        reason: [code, message].filter(Boolean).join(': ') || null,
      }));
    case 'discard':
      return plan.document.deadLetters.filter(isWanted).map(({ outcome, ...entry }) => ({
        words: DISCARD_VERDICTS[outcome] ?? { is: 'look', label: outcome, todo: '' },
        reason: 'message' in entry && typeof entry.message === 'string' ? entry.message : null,
      }));
    case 'repair':
      return (plan.document.repair?.events ?? []).map(({ consumer, outcome, why }) => ({
        words:
          outcome === 'unsent'
            ? { is: 'look', label: 'not sent', todo: 'It cannot be sent again.' }
            : { is: 'ok', label: `sent to ${consumer}`, todo: `Only ${consumer} receives it.` },
        reason: why,
      }));
    case 'resend': {
      const { consumer, verdict, code, message } = plan.document;
      const { is, label } = VERDICTS[verdict];
      const words =
        verdict === 'runs'
          ? { is, label: 'would run', todo: `Sent to ${consumer} only, as a new event.` }
          : { is, label, todo: 'Not sent.' };
      return [{ words, reason: [code, message].filter(Boolean).join(': ') || null }];
    }
  }
}

/** The most ids in a command: more are hard to paste. */
const IDS_MAX = 20;

/**
 * The command that applies the plan of a read-only page.
 *
 * @param reading - the command that made the plan
 *
 * @example
 * ```ts
 * commandOf('npx cdk-mailroom dlq redrive dead --stage dev', { kind: 'redrive', source: 'dead' });
 * // 'npx cdk-mailroom dlq redrive dead --stage dev --apply --reason "…"'
 * ```
 */
export function commandOf(reading: string, request: PlanRequest): string {
  const ids = 'ids' in request && (request.ids?.length ?? 0) > 1 ? (request.ids ?? []) : [];
  // SQS's ids and event ids need no quotes; others are left out rather than quoted wrongly.
  const words = ids.filter((id) => /^[\w-]+$/.test(id)).slice(0, IDS_MAX);
  if (ids.length > 0 && words.length === 0) return reading; // it would select all of them
  const source = 'source' in request ? request.source : '';
  const selected =
    words.length === 0 ? reading : reading.replace(source, () => `${source} ${words.join(' ')}`);
  return `${selected} --apply --reason "…"`;
}

/** A form that confirms a plan. */
export interface Confirmation {
  readonly reason: string;
  /** The text that was typed. */
  readonly typed: string;
  /** The box that says that the providers were asked is ticked, or there is none. */
  readonly isChecked: boolean;
}

/** The limits of a reason, as the command has them. */
const REASON_MIN = 3;
export const REASON_MAX = 500;

/**
 * The conditions that a plan still lacks before it can be applied, as sentences; empty once it can. The server checks them again.
 *
 * @param wanted - the text to type
 */
export function missingFrom({ reason, typed, isChecked }: Confirmation, wanted: string): string[] {
  return [
    ...(reason.trim().length < REASON_MIN ? ['Write a reason.'] : []),
    ...(isChecked ? [] : ['Ask the providers of the side effects, then tick the box.']),
    ...(typed.trim() === wanted ? [] : [`Type ${wanted} to confirm.`]),
  ];
}
