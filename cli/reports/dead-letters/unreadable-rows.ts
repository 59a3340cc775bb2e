import { discardMessage } from '../../../lambdas/runtime/operations/message-operations.ts';
import type { Note, OperationDeps } from '../../../lambdas/runtime/store/operation-record.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import { readInbox } from '../../deployment/message-reader.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import { type DeadLetter, inboxId } from './dead-letters.ts';
import type { DeadLetterSource } from './sources.ts';

/**
 * Settles the rows of messages that could not be read when they were rejected, and whose event can be read today. Such a message has a
 * row and a REJECTED pointer under its SQS message id, which SQS keeps when it moves the message to the dead-letter queue. The event
 * is done under its own id, so that row would stay REJECTED permanently.
 *
 * @param done - dead letters whose events are processed or discarded
 */
export async function settleUnreadable(
  deps: OperationDeps,
  source: DeadLetterSource,
  done: readonly DeadLetter[],
  { by, reason }: Note,
): Promise<void> {
  if (source.kind !== 'consumer') return; // a rule's dead letter never reached the consumer
  const { name } = source.consumer;
  await eachOf(done, async ({ id, eventId }) => {
    const unreadId = inboxId({ id, eventId: undefined });
    // Without a row there is nothing to settle, and a discard would create one.
    if (
      eventId === undefined ||
      readable(await readInbox(deps.table, name, unreadId, true))?.status !== 'REJECTED'
    )
      return;
    await discardMessage(deps, {
      consumer: name,
      eventId: unreadId,
      by,
      reason: `Read as ${eventId}: ${reason}`,
    });
  });
}
