import { type JudgeDeps, type JudgedDeadLetter, judgeDeadLetters } from '../dead-letters/redrive-plan.ts';
import type { Trace } from './trace.ts';

/** The verdict of a redrive on a dead letter, by the consumer's deployed code. */
export type RedriveCheck = Pick<JudgedDeadLetter, 'id' | 'verdict' | 'code' | 'message'>;

/**
 * Returns what a redrive would do to the dead letter of a verdict, so that `why` never suggests one that its own plan refuses.
 *
 * @returns `undefined` if the verdict is not about a dead letter, or its consumer's function could not be called: the plan of the
 * redrive then reports why
 */
export async function checkRedrive(
  deps: JudgeDeps,
  { events }: Trace,
  { eventId, consumer: name }: { readonly eventId: string; readonly consumer?: string | undefined },
): Promise<RedriveCheck | undefined> {
  const message = events
    .find((event) => event.eventId === eventId)
    ?.messages.find(({ consumer }) => consumer.name === name);
  if (message?.deadLetter === undefined) return undefined;
  const { deadLetter, row } = message;
  const unknown = { type: undefined, fingerprint: undefined, lastError: undefined };
  try {
    const [judged] = await judgeDeadLetters(deps, deadLetter.source, [{ ...deadLetter, ...unknown, row }]);
    return judged;
  } catch {
    return undefined;
  }
}
