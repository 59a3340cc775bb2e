import { fingerprint as maskedCause } from '../../../lambdas/runtime/base/fingerprint.ts';
import { effectText } from '../../deployment/effects.ts';
import { fingerprintText, when } from '../../terminal/listing.ts';
import { clipped, detailedTable } from '../../terminal/output.ts';
import { paint } from '../../terminal/paint.ts';
import { type DeadLetter, rejectionCode } from './dead-letters.ts';

/** A dead letter as in the JSON document of docs/cli-json.md. */
export function deadLetterJson(deadLetter: DeadLetter) {
  return {
    id: deadLetter.id,
    eventId: deadLetter.eventId ?? null,
    type: deadLetter.type ?? null,
    sentAt: deadLetter.sentAt ?? null,
    expiresAt: deadLetter.expiresAt ?? null,
    fingerprint: deadLetter.fingerprint ?? null,
    lastError: deadLetter.lastError ?? null,
    neverClaimed: deadLetter.isNeverClaimed ?? false,
    effects: deadLetter.effects ?? [],
  };
}

/** A dead letter in a list or a plan. */
export interface DeadLetterLine {
  readonly deadLetter: DeadLetter;
  /** The first cell: a verdict or an outcome. */
  readonly label?: string | undefined;
  /** Why it would not run: shown instead of its fingerprint, or below it in a group. */
  readonly refusal?: DeadLetterRefusal | undefined;
}

/** The reason why a dead letter would not run again. */
interface DeadLetterRefusal {
  /** An error code, e.g. `INVALID_PAYLOAD`. */
  readonly code?: string | undefined;
  readonly message?: string | undefined;
}

/** More dead letters than this are shown as groups: forty of them are three screens, and usually three causes. */
export const EACH_MAX = 10;

/** Returns true if this many dead letters are shown as groups. */
export function isGrouped(count: number, { verbose = false }: { readonly verbose?: boolean }): boolean {
  return count > EACH_MAX && !verbose;
}

/** The look of a table of dead letters. */
interface DeadLetterLook {
  /** The head of the labels, if there are any. */
  readonly label?: string | undefined;
  readonly grouped: boolean;
  /** Their work is done: no expiry is shown, and no hint to list them again. @default false */
  readonly done?: boolean;
}

/** Dead letters as a table: one row for each, with a cause that several share above them, or one row for each cause. */
export function deadLettersText(lines: readonly DeadLetterLine[], now: number, look: DeadLetterLook): string {
  return look.grouped ? groupTable(lines, now, look) : lineTable(lines, now, look);
}

/** The cause of a dead letter without a fingerprint. */
const UNKNOWN = '-';

function lineTable(
  lines: readonly DeadLetterLine[],
  now: number,
  { label, done = false }: DeadLetterLook,
): string {
  const causes = new Map<string, DeadLetterLine[]>();
  for (const line of lines) {
    const cause = clipped(
      refusalText(line.refusal) ?? fingerprintText(line.deadLetter.fingerprint ?? UNKNOWN),
    );
    causes.set(cause, [...(causes.get(cause) ?? []), line]);
  }
  const rows = [...causes].flatMap(([cause, same]) => {
    const isShared = same.length > 1 && cause !== UNKNOWN;
    return same.map(({ deadLetter, label: said }, index) => {
      const { id, eventId, type, sentAt } = deadLetter;
      const event = eventId === undefined || eventId === id ? '' : ` ${eventId}`;
      return {
        heading: isShared && index === 0 ? `${same.length} with one cause: ${cause}` : undefined,
        cells: [
          ...(said === undefined ? [] : [said]),
          clipped(id),
          when(sentAt ?? null, now),
          ...(done ? [] : [expiryText(deadLetter, now)]),
        ],
        details: [
          `${clipped(type ?? 'unknown type')}${event}`,
          ...(isShared ? [] : [cause]),
          ...(deadLetter.effects ?? []).map(effectText),
        ],
      };
    });
  });
  const head = ['dead letter', 'since', ...(done ? [] : ['expires'])];
  return detailedTable(label === undefined ? head : [label, ...head], rows);
}

/** The dead letters of each cause and label, the most frequent first. */
export function groupsOf<Line extends DeadLetterLine>(
  lines: readonly Line[],
): readonly (readonly [Line, ...Line[]])[] {
  const groups = new Map<string, [Line, ...Line[]]>();
  for (const line of lines) {
    const { label, refusal, deadLetter } = line;
    // Messages quote values, which differ from one dead letter to the next.
    const refused = refusal && maskedCause({ code: refusal.code, message: refusal.message ?? '' });
    const key = JSON.stringify([label, deadLetter.fingerprint, refused]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [line]);
    else group.push(line);
  }
  return [...groups.values()].sort((a, b) => b.length - a.length);
}

function groupTable(
  lines: readonly DeadLetterLine[],
  now: number,
  { label, done = false }: DeadLetterLook,
): string {
  const isKept = done || lines.every(({ deadLetter }) => deadLetter.expiresAt === undefined); // DEAD events
  const rows = groupsOf(lines).map((group) => {
    const [{ deadLetter, label: said, refusal }] = group;
    const soonest = group
      .map((line) => line.deadLetter)
      .reduce((a, b) => ((b.expiresAt ?? 0) < (a.expiresAt ?? 0) ? b : a));
    const oldest = Math.min(...group.map((line) => line.deadLetter.sentAt ?? now));
    const refused = refusalText(refusal);
    const withEffects = group.filter((line) => (line.deadLetter.effects ?? []).length > 0).length;
    return {
      cells: [
        group.length,
        ...(said === undefined ? [] : [said]),
        isKept ? when(oldest, now) : expiryText(soonest, now),
        clipped(deadLetter.eventId ?? deadLetter.id),
      ],
      details: [
        fingerprintText(deadLetter.fingerprint ?? refused),
        ...(refused === undefined || isCauseOf(refusal, deadLetter) ? [] : [`now: ${clipped(refused)}`]),
        ...(withEffects === 0 ? [] : [`side effects have happened, or may have, for ${withEffects} of them`]),
      ],
    };
  });
  const head = [
    'count',
    ...(label === undefined ? [] : [label]),
    isKept ? 'oldest' : 'first expiry',
    'example',
  ];
  const hint = done ? '' : `\n${paint.dim('--verbose shows each dead letter.')}`;
  return `${detailedTable(head, rows)}${hint}`;
}

/** Returns true if the refusal is the cause for which it became a dead letter, or its only known cause. */
function isCauseOf({ code }: DeadLetterRefusal = {}, { fingerprint, row }: DeadLetter): boolean {
  return fingerprint === undefined || rejectionCode(row) === code;
}

function expiryText({ expiresAt }: DeadLetter, now: number): string {
  return expiresAt === undefined ? 'never' : when(expiresAt, now);
}

function refusalText({ code, message }: DeadLetterRefusal = {}): string | undefined {
  return [code, message].filter(Boolean).join(': ') || undefined;
}
