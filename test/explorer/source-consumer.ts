import { createInboxProcessor } from '../../lambdas/runtime/sources/inbox-processor.ts';
import {
  type ConsumerDeps,
  type ConsumerHandler,
  createConsumer,
} from '../../lambdas/runtime/sources/sqs/consumer.ts';

/** A consumer whose messages go through the inbox of another source: the queue does what the answers say. */
export function sourceConsumer(deps: ConsumerDeps): ConsumerHandler {
  const inbox = createInboxProcessor(deps);
  const operators = createConsumer(deps);
  return async (event, context) => {
    if (!Array.isArray(event.Records)) return operators(event, context);
    const failures = event.Records.map(async ({ messageId, body, receiptHandle, attributes }) => {
      const message = {
        id: messageId,
        body,
        receives: Number(attributes.ApproximateReceiveCount),
        sentAt: Number(attributes.SentTimestamp),
      };
      const remainingMs = context.getRemainingTimeInMillis();
      const answer = await inbox.process(message, deps.handlers, { remainingMs });
      if (answer.kind === 'done' || answer.kind === 'duplicate') return [];
      const afterMs = answer.kind === 'retry' ? answer.afterMs : 0;
      // Failing to hide it is a part of the exploration: then its visibility timeout applies.
      await deps.queue.changeVisibility(receiptHandle, Math.ceil(afterMs / 1_000)).catch(() => {});
      return [{ itemIdentifier: messageId }];
    });
    return { batchItemFailures: (await Promise.all(failures)).flat() };
  };
}
