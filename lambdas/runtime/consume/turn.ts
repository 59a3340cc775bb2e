import { admissionOf, mustRunAlone } from '../inbox/inbox-admission.ts';
import { nextAttemptAt } from '../inbox/inbox-state.ts';
import type { ConsumerContext } from './consumer-context.ts';
import type { Delivery } from './delivery.ts';

/** The way in which a message may run now, by its row. */
export interface Turn {
  /**
   * It is a *suspect*: its last claims ended without a result, so it may kill its process. It must run alone, or it would count an attempt
   * of each message beside it.
   */
  readonly alone: boolean;
  /** Another worker holds it until then, epoch milliseconds. @default none */
  readonly heldUntil?: number | undefined;
  /** Its next attempt is due then, epoch milliseconds. @default now */
  readonly dueAt?: number | undefined;
}

/**
 * Judges a message before it runs. Only a message that was received before, and that carries an event, can have a row that matters: an
 * ordinary message needs no call.
 *
 * @throws the store's error
 */
export async function turnOf(
  { inbox }: Pick<ConsumerContext, 'inbox'>,
  { message, receives, content }: Pick<Delivery, 'message' | 'receives' | 'content'>,
): Promise<Turn> {
  if (receives <= 1 || !('envelope' in content)) return { alone: false };
  await inbox.open();
  const row = await inbox.read(message.eventId);
  if (row === undefined) return { alone: false };
  const admission = admissionOf(inbox.rules, message, row);
  if (admission.status === 'leased') return { alone: false, heldUntil: admission.until };
  if (admission.status !== 'open' && admission.status !== 'abandoned') return { alone: false };
  const dueAt = row.status === 'FAILED' ? nextAttemptAt(row, inbox.rules.clock.now()) : undefined;
  return { alone: mustRunAlone(row), dueAt };
}
