import type { SQSBatchItemFailure, SQSBatchResponse, SQSRecord } from 'aws-lambda';
import type { Delivery } from '../../consume/delivery.ts';
import type { MessageOutcome } from '../../consume/message-outcome.ts';
import type { LaterDelivery } from './batch-turn.ts';

/** Returns true if a record can be named in a batch response, which lists failures by this id. */
export function hasMessageId(record: SQSRecord): boolean {
  return typeof record?.messageId === 'string' && record.messageId !== '';
}

/**
 * The partial batch response: the messages that SQS keeps. SQS may deliver a message twice in one batch; it is named once.
 *
 * @param later - messages whose turn it was not
 * @param ends - the outcome of each message in `now`
 */
export function batchResponse(
  later: readonly LaterDelivery[],
  now: readonly Delivery[],
  ends: readonly MessageOutcome[],
): SQSBatchResponse {
  const failed = new Map([
    ...later.map(({ delivery, outcome }) => [delivery.message.messageId, outcome.error] as const),
    ...now.flatMap(({ message }, i) => {
      const end = ends[i];
      return end?.kind === 'again' ? [[message.messageId, end.error] as const] : [];
    }),
  ]);
  return { batchItemFailures: [...failed].map(([id, error]) => itemFailure(id, error)) };
}

/** The error is for tests, and not enumerable: it is not part of the answer that Lambda receives. */
function itemFailure(itemIdentifier: string, error: unknown): SQSBatchItemFailure {
  return Object.defineProperty({ itemIdentifier }, 'error', { value: error });
}
