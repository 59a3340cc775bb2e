import type { RedriveVerdict } from '../../../reports/dead-letters/redrive-plan.ts';
import type { DeadLetterEntry, PlannedDeadLetter } from '../documents.ts';

/** A dead letter as it was read: with its verdict if the redrive could be planned. */
export type ReadDeadLetter = DeadLetterEntry &
  Partial<Pick<PlannedDeadLetter, 'verdict' | 'code' | 'message'>>;

/** The dead letters of one cause. Times are epoch milliseconds. */
export interface CauseGroup {
  /** `null`: the cause is unknown. */
  readonly fingerprint: string | null;
  /** Oldest first. */
  readonly deadLetters: readonly ReadDeadLetter[];
  readonly oldestAt: number | null;
  /** When the first is permanently deleted; `null` if none is. */
  readonly firstExpiryAt: number | null;
  /** The number of dead letters with each verdict of a redrive; empty if they were not judged. */
  readonly verdicts: ReadonlyMap<RedriveVerdict, number>;
}

/**
 * Groups dead letters by cause, the most frequent first.
 *
 * @example
 * ```ts
 * causesOf(document.deadLetters)[0]?.firstExpiryAt;
 * ```
 */
export function causesOf(deadLetters: readonly ReadDeadLetter[]): CauseGroup[] {
  const groups = new Map<string | null, ReadDeadLetter[]>();
  for (const deadLetter of deadLetters) {
    const group = groups.get(deadLetter.fingerprint);
    if (group === undefined) groups.set(deadLetter.fingerprint, [deadLetter]);
    else group.push(deadLetter);
  }
  return [...groups].map(groupOf).sort((a, b) => b.deadLetters.length - a.deadLetters.length);
}

function groupOf([fingerprint, group]: readonly [string | null, ReadDeadLetter[]]): CauseGroup {
  const verdicts = new Map<RedriveVerdict, number>();
  for (const { verdict } of group) if (verdict) verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1);
  return {
    fingerprint,
    deadLetters: group.toSorted((a, b) => (a.sentAt ?? 0) - (b.sentAt ?? 0)),
    oldestAt: least(group.map(({ sentAt }) => sentAt)),
    firstExpiryAt: least(group.map(({ expiresAt }) => expiresAt)),
    verdicts,
  };
}

/**
 * The choice of exactly the dead letters of a cause: by the cause, which the command finds as a part of others, or else by id.
 *
 * @param all - the causes of the source
 */
export function choiceOf(
  { fingerprint, deadLetters }: CauseGroup,
  all: readonly CauseGroup[],
): { readonly cause: string } | { readonly ids: readonly string[] } {
  const wanted = fingerprint?.toLowerCase() ?? '';
  const found = all.filter((group) => (group.fingerprint ?? '').toLowerCase().includes(wanted));
  if (fingerprint !== null && found.length === 1) return { cause: fingerprint };
  return { ids: deadLetters.map(({ id }) => id) };
}

function least(times: readonly (number | null)[]): number | null {
  return times.reduce((a, b) => (a === null || (b !== null && b < a) ? b : a), null);
}
