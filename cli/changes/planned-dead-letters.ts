import type { Deployment } from '../deployment/deployment.ts';
import {
  type DeadLetter,
  type DeadLetterSource,
  type ReceivedDeadLetters,
  receiveDeadLetters,
} from '../reports/dead-letters/dead-letters.ts';
import type { PlannedVerdicts } from '../terminal/change.ts';

/** The sweep reads each source every minute, which hides its dead letters for a moment: they are looked for again. */
const LOOKS = 5;
const LOOK_EVERY_MS = 1_000;

/**
 * Receives the dead letters of a source for a plan or a change. Those of a confirmed plan may be anywhere in the queue, because SQS
 * returns dead letters in any order, so all are received.
 *
 * @param options - as those of `receiveDeadLetters`; a confirmed plan has no limit
 */
export async function receiveForChange(
  deployment: Pick<Deployment, 'directory' | 'table' | 'stored' | 'queues' | 'clock' | 'terminal'>,
  source: DeadLetterSource,
  {
    limit,
    hideS,
    planned,
  }: { readonly limit: number; readonly hideS: number; readonly planned?: PlannedVerdicts | undefined },
): Promise<ReceivedDeadLetters> {
  const { clock, terminal } = deployment;
  const { signal } = terminal;
  if (planned === undefined) return receiveDeadLetters(deployment, source, { limit, hideS });
  const found = new Map<string, DeadLetter>();
  let total = 0;
  for (let look = 0; look < LOOKS && !signal.aborted; look += 1) {
    if (look > 0) await clock.sleep(LOOK_EVERY_MS, signal);
    const received = await receiveDeadLetters(deployment, source, { limit: Number.POSITIVE_INFINITY, hideS });
    for (const deadLetter of received.deadLetters) found.set(deadLetter.id, deadLetter);
    total = Math.max(total, received.total);
    if ([...planned.keys()].every((id) => found.has(id))) break;
  }
  return { deadLetters: [...found.values()], total };
}

/** A dead letter of a confirmed plan whose verdict is another one now: it is left alone. */
export interface ChangedDeadLetter {
  /** Without its details if it has gone. */
  readonly deadLetter: DeadLetter;
  /** The change, as a sentence. */
  readonly text: string;
}

/** The dead letters that a confirmed plan still describes, and those that it no longer does. */
export interface AsPlanned<Judged> {
  readonly same: readonly Judged[];
  readonly changed: readonly ChangedDeadLetter[];
}

/**
 * Compares dead letters with the plan that the operator has confirmed. Without a plan, nothing has changed.
 *
 * @param judged - the dead letters of the plan that are visible now
 * @param deadLetterOf - the dead letter of a judgment
 * @param verdictOf - its verdict now, in the words of the plan
 */
export function asPlanned<Judged>(
  planned: PlannedVerdicts | undefined,
  judged: readonly Judged[],
  deadLetterOf: (one: Judged) => DeadLetter,
  verdictOf: (one: Judged) => string,
): AsPlanned<Judged> {
  if (planned === undefined) return { same: judged, changed: [] };
  const isSame = (one: Judged) => planned.get(deadLetterOf(one).id) === verdictOf(one);
  const visible = new Set(judged.map((one) => deadLetterOf(one).id));
  const gone = [...planned.keys()].filter((id) => !visible.has(id));
  return {
    same: judged.filter(isSame),
    changed: [
      ...judged
        .filter((one) => !isSame(one))
        .map((one) => ({
          deadLetter: deadLetterOf(one),
          text: `It was ${planned.get(deadLetterOf(one).id)} in the plan and is ${verdictOf(one)} now.`,
        })),
      ...gone.map((id) => ({
        deadLetter: { ...NOTHING_KNOWN, id },
        text: 'It left the source, or another command is reading it.',
      })),
    ],
  };
}

const NOTHING_KNOWN = {
  eventId: undefined,
  type: undefined,
  sentAt: undefined,
  expiresAt: undefined,
  fingerprint: undefined,
  lastError: undefined,
};
