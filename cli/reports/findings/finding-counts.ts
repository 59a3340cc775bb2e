import type { Checked, PartProblem } from '../checks/check.ts';

/** `broken`: action is required. `look`: a consumer may be in trouble, or something was not checked. */
export type FindingState = 'broken' | 'look';

/** The members of a finding that count. */
interface CountedFinding {
  readonly state: FindingState;
  readonly acknowledged?: object | undefined;
}

/** A part of the verdict on a Mailroom. */
interface FindingCount {
  readonly is: FindingState;
  /** E.g. `2 problems`. */
  readonly text: string;
}

/** The verdict of a status without open findings, and of checks that found no problem. */
export const NOTHING_BROKEN = 'nothing visible is broken';
export const NO_PROBLEM = 'no problem found';

/** The state of a problem that checks found: a pause is intended. */
export function problemState({ problem, state }: Pick<PartProblem, 'problem' | 'state'>): FindingState {
  return state ?? (problem === 'paused' ? 'look' : 'broken');
}

/** The members of a `Warning` that decide its state. */
interface CountedWarning {
  readonly look: string;
  readonly messages: number;
}

/** One message may crash its function again and again; two are not chance. */
const CRASHING_MIN = 2;

/** The state of a warning: a consumer that crashes at every message processes nothing, so action is required. */
export function warningState({ look, messages }: CountedWarning): FindingState {
  return look === 'crashing' && messages >= CRASHING_MIN ? 'broken' : 'look';
}

/** True for a finding that no operator has acknowledged. */
export function isOpen({ acknowledged }: Pick<CountedFinding, 'acknowledged'>): boolean {
  return acknowledged === undefined;
}

/** The open findings, counted, the worst first: `3 problems`, `1 warning`, `2 parts not checked`. Empty if all is well. */
export function findingCounts(
  findings: readonly CountedFinding[],
  { notChecked }: Pick<Checked, 'notChecked'>,
): FindingCount[] {
  const open = findings.filter(isOpen);
  const problems = open.filter(({ state }) => state === 'broken').length;
  const warnings = open.length - problems - notChecked.length;
  const parts = new Set(notChecked.flatMap((check) => check.parts)).size;
  const counted = (is: FindingState, count: number, noun: string, rest = ''): FindingCount[] =>
    count > 0 ? [{ is, text: `${count} ${noun}${count === 1 ? '' : 's'}${rest}` }] : [];
  return [
    ...counted('broken', problems, 'problem'),
    ...counted('look', warnings, 'warning'),
    ...counted('look', parts, 'part', ' not checked'),
  ];
}
