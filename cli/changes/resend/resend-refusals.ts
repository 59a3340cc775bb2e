import { CLOCK_SKEW_MS } from '../../../lambdas/runtime/base/clock.ts';
import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { jsonObject, textOf } from '../../../lambdas/runtime/base/json.ts';
import { entryBytes, PUT_EVENTS_BYTES_MAX } from '../../../lambdas/runtime/bus/event-bus.ts';
import type { Envelope } from '../../../lambdas/runtime/events/event.ts';
import { effectsToCheck, startedEffects } from '../../../lambdas/runtime/inbox/started-effects.ts';
import type { ConsumerDeadLetters } from '../../../lambdas/runtime/operations/dead-letters.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import { consumersOf, mailroomEventsOf } from '../../../lambdas/runtime/operations/subscribed-events.ts';
import { isEventId } from '../../../lambdas/runtime/store/event-id.ts';
import type { InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { effectNames } from '../../deployment/effects.ts';
import type { StoredRows } from '../../deployment/stored-rows.ts';
import type { DeadLetter } from '../../reports/dead-letters/dead-letters.ts';
import { pastPlaces, placesIn } from '../../reports/dead-letters/redrive-order.ts';
import {
  type EventAtConsumer,
  inboxId,
  settled,
  supersededText,
} from '../../reports/dead-letters/standing.ts';
import { minuteAfter } from '../../terminal/output.ts';
import { shell } from '../../terminal/shell.ts';

/** @throws `CANNOT_RESEND` if it is not a Mailroom event that its consumer can read */
export function readableEvent({ eventId, received }: DeadLetter): {
  readonly bus: string;
  readonly envelope: Envelope;
} {
  const body = jsonObject(received?.body);
  if (eventId === undefined || body === undefined)
    throw cannot(
      'Its envelope cannot be read, so there is no event to replace. The plan of its discard looks for its event in the outbox, and sends that one first.',
    );
  if (!isEventId(eventId))
    throw cannot(
      'It is an external event, whose identity may depend on its data. Have its publisher send a correct one, then discard this one.',
    );
  return { bus: textOf(body.source) ?? '', envelope: body.detail as Envelope };
}

/** Refuses a dead letter whose event may still run, or has run. */
export function refuseSettled(
  { clock, commandLine }: Pick<Deployment, 'clock' | 'commandLine'>,
  deadLetter: DeadLetter,
  consumer: string,
): void {
  const { eventId = '' } = deadLetter;
  switch (settled(deadLetter, clock.now())) {
    case 'handled':
      throw cannot(
        `${consumer} has already processed event ${eventId}, or an operator has discarded it. Discard the dead letter.`,
      );
    case 'superseded':
      throw superseded(eventId, consumer, supersededText(deadLetter));
    case 'busy':
      throw cannot(`A worker holds event ${eventId}, or it is retried soon. Repeat the command in a minute.`);
    case 'row-deleted':
      throw cannot(
        `The row of event ${eventId} at ${consumer} was deleted by hand, so which side effects have happened is unknown. Ask their providers, then discard the dead letter with --effects-checked.`,
      );
    case 'unreadable':
      throw cannot(
        `The row of event ${eventId} at ${consumer} cannot be read: \`${commandLine(shell`why ${eventId}`)}\` shows it.`,
      );
    default:
  }
}

/**
 * Refuses to replace an event whose handler has started side effects: those of the new event have other idempotency keys, so the
 * provider would repeat them. One that ended with an error may have happened too, and only its key would tell.
 */
export function refuseEffects({ eventId, row }: EventAtConsumer, consumer: string, now: number): void {
  const effects = effectsToCheck(startedEffects(consumer, eventId, readable(row), now));
  if (effects.length === 0) return;
  throw cannot(
    `The handler of ${consumer} has started side effects of event ${eventId}: ${effectNames(effects)}. A new event has new idempotency keys, so they would run again. ` +
      'If their providers confirm that nothing happened, repeat the command with --repeat-effects.',
  );
}

/** Refuses while a function may still call a provider: its answer today would not be its answer in a minute. */
export function refuseRunningEffects({ eventId, row }: EventAtConsumer, consumer: string, now: number): void {
  const running = Object.values(effectsOf(row)).filter(({ status }) => status === 'IN_PROGRESS');
  const until = Math.max(...running.map(({ endsBy }) => endsBy + CLOCK_SKEW_MS));
  if (until < now) return;
  const effects = effectNames(startedEffects(consumer, eventId, readable(row), now));
  throw cannot(
    `A function may still run side effects of event ${eventId} until ${minuteAfter(until)}: ${effects}. Ask their providers and repeat the command then.`,
  );
}

/** The side effects that were started for a message, by name. */
export function effectsOf(row: DeadLetter['row']): NonNullable<InboxRow['effects']> {
  return readable(row)?.effects ?? {};
}

/**
 * Refuses an event whose number was applied or passed over: the new one has the same number, and would be superseded. The function has judged
 * the new one by the order of a single handler; without one, the place of the old one is of an order that was removed.
 */
export async function refusePassedOver(
  stored: Pick<StoredRows, 'inbox'>,
  consumer: ConsumerEntry,
  deadLetter: DeadLetter,
): Promise<void> {
  if (consumer.order === undefined) return;
  const past = (await pastPlaces(stored, placesIn(consumer, [deadLetter]))).get(deadLetter);
  if (past?.verdict === 'superseded') throw superseded(inboxId(deadLetter), consumer.name, past.message);
}

function superseded(eventId: string, consumer: string, why: string): MailroomError {
  return cannot(
    `Event ${eventId} would not run at ${consumer}. ${why} ` +
      'Have its producer write a correct event under the next number, then discard the dead letter.',
  );
}

export function refuseTooLarge(entry: Parameters<typeof entryBytes>[0]): void {
  const bytes = entryBytes(entry);
  if (bytes < PUT_EVENTS_BYTES_MAX) return;
  throw new MailroomError(
    'EVENT_TOO_LARGE',
    `With the new data the event takes ${bytes} bytes; an event must have fewer than ${PUT_EVENTS_BYTES_MAX}. A resend carries its data in the event, never in S3: store the large part elsewhere and put its address in the event, or have the producer publish a new one, and discard the dead letter.`,
  );
}

/** The queue has no filter, so the filter of the consumer's subscription is applied here. */
export function refuseFiltered(
  { directory }: Pick<Deployment, 'directory'>,
  { consumer }: ConsumerDeadLetters,
  { source, type }: { readonly source: string; readonly type: string },
  data: unknown,
): void {
  const declares = mailroomEventsOf(consumer).some((event) => event.source === source && event.type === type);
  const own = { ...directory, consumers: [consumer] };
  if (!declares || consumersOf(own, { source, type, data: () => data }).length > 0) return;
  throw cannot(
    `The filter of ${consumer.name} excludes ${type} with this data. Change the data, or discard the dead letter.`,
  );
}

/** The refusal of a resend. */
export function cannot(text: string): MailroomError {
  return new MailroomError('CANNOT_RESEND', text);
}
