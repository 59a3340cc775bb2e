import type { DeadLetterQueue } from '../../../lambdas/runtime/operations/dead-letters.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import type { StoredEventRow } from '../../../lambdas/runtime/operations/outbox-rows.ts';
import type { QueueDepth, QueueMessage } from '../../../lambdas/runtime/operations/queues.ts';
import { eventIdTime, isEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { isExternalEventId } from '../../../lambdas/runtime/store/external-id.ts';
import type { InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import { readable, type UnreadableRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { EffectExecution } from '../../deployment/executions.ts';
import type { ResentEvent } from '../../deployment/resent-event.ts';
import type { CaptureConnector } from '../../deployment/stored-rows.ts';
import type { DeadLetter } from '../dead-letters/dead-letters.ts';
import type { StoredEnvelope } from '../events/stored-envelope.ts';
import type { MessageAtSource } from './source-messages.ts';

/** All stored rows of an event, in the outbox and at each consumer. */
export interface TracedEvent {
  readonly eventId: string;
  /** The table of its outbox row, if that is of another Mailroom on the bus. */
  readonly elsewhere?: string | undefined;
  /** Absent if it was never committed here, or was published and has expired. */
  readonly row: StoredEventRow | undefined;
  /** Absent if it cannot be read. */
  readonly envelope: StoredEnvelope | undefined;
  /** Its resend, if an operator sent it in place of another event. Searched only if the event has no outbox row. */
  readonly resent?: ResentEvent | undefined;
  /** One for each consumer that must receive it. */
  readonly messages: readonly TracedMessage[];
  /** One for each consumer of another source that has a row of it, or handles it. @default none */
  readonly atSources?: readonly MessageAtSource[] | undefined;
  /** The connectors that read it. Read only if it is left to change data capture. @default none */
  readonly connectors?: readonly CaptureConnector[] | undefined;
  /** The ids of the events that its consumers' commits wrote, or that an operator sent in its place. */
  readonly caused: readonly string[];
}

/** An event at one consumer. */
export interface TracedMessage {
  readonly consumer: ConsumerEntry;
  /** Absent if the consumer has not claimed it. */
  readonly row: InboxRow | UnreadableRow | undefined;
  /** When its last attempt failed, epoch milliseconds, if known. */
  readonly failedAt: number | undefined;
  /** The consumer's queue, in which the message may be. Read only if the row does not exist, or the message was rejected; absent if the queue does not exist. */
  readonly queue: QueueDepth | undefined;
  /** Its dead letter, if found. Searched only if the row does not exist, or the message was rejected. */
  readonly deadLetter: FoundDeadLetter | undefined;
  /** Some dead letters were not read, and its own may be among them. */
  readonly unseen: boolean;
  /** Those that its effects started. @default none */
  readonly executions?: readonly EffectExecution[] | undefined;
  /** It was rejected, and its row was deleted by hand: its pointer is there. @default false */
  readonly isRowDeleted?: boolean | undefined;
}

/** A dead letter and its source. */
export interface FoundDeadLetter extends Pick<DeadLetter, 'id' | 'eventId'> {
  readonly source: DeadLetterQueue;
  readonly sentAt: number;
  /** When SQS permanently deletes it, epoch milliseconds. */
  readonly expiresAt: number;
  /** EventBridge's error, if it could not deliver the event. */
  readonly refusal: string | undefined;
  /** As received from SQS. */
  readonly received: QueueMessage;
}

/** A chain of events. */
export interface Trace {
  /** In order of commit. */
  readonly events: readonly TracedEvent[];
  /** There are more than were read. */
  readonly more: boolean;
  /** The consumers on the bus that were not read and must, or may, receive one of the events, each with the reason. @default none */
  readonly unread?: readonly string[] | undefined;
  /** The search that found it. @default it was not searched for */
  readonly searched?: { readonly given: string; readonly until: number } | undefined;
}

/**
 * Returns the time of an event's commit, epoch milliseconds, from its id; for an external event, the earliest time in its inbox rows. 0 if
 * neither is known.
 */
export function bornAt({ eventId, messages }: Pick<TracedEvent, 'eventId' | 'messages'>): number {
  if (isEventId(eventId)) return eventIdTime(eventId);
  if (!isExternalEventId(eventId)) return 0;
  const times = messages.flatMap(({ row }) => {
    const known = readable(row);
    if (known === undefined) return [];
    const { processedAt } = known.status === 'PROCESSED' ? known : {};
    const { rejectedAt } = known.status === 'REJECTED' ? known : {};
    return [known.claimedAt, processedAt, rejectedAt].filter((at) => at !== undefined);
  });
  return times.length === 0 ? 0 : Math.min(...times);
}
