import { TransactionCanceledException } from '@aws-sdk/client-dynamodb';
import { TransactWriteCommand } from '@aws-sdk/lib-dynamodb';
import type { ReceivingHalf } from './composed-system.ts';
import { DAY_S } from './stored-outbox.ts';

/** The time that a handled message is remembered, in seconds: longer than it can be redelivered. */
const RETENTION_S = 35 * DAY_S;

/** The inbox's table. */
const INBOX = 'inbox';

/**
 * Puts a row per handled message, on condition that it is absent, in the transaction of the handler's own writes: either both are
 * stored or neither is. Nothing is claimed: two workers with the same message both run, and one transaction is refused.
 *
 * The deduplication of NServiceBus on DynamoDB (docs.particular.net, "DynamoDB persistence transactions" and "Outbox with
 * DynamoDB persistence"), without the messages that its record stores; "Idempotent Consumer" on microservices.io.
 */
export const transactionalInbox: ReceivingHalf = {
  name: 'transactional-inbox',
  effects: 'exactly once',
  tables: [{ name: INBOX, keys: ['messageId'] }],
  consumer: (run, name) => async (event) => {
    const write = run.handle(name, event);
    const now = run.aws.clock.now();
    try {
      await run.documents.send(
        new TransactWriteCommand({
          TransactItems: [
            {
              Put: {
                TableName: INBOX,
                Item: {
                  messageId: `${name}#${event.eventId}`,
                  handledAt: now,
                  expiresAt: Math.ceil(now / 1_000) + RETENTION_S,
                },
                ConditionExpression: 'attribute_not_exists(messageId)',
              },
            },
            { Update: write },
          ],
        }),
      );
    } catch (error) {
      if (!isHandledAlready(error)) throw error;
    }
  },
};

function isHandledAlready(error: unknown): boolean {
  return (
    error instanceof TransactionCanceledException &&
    error.CancellationReasons?.[0]?.Code === 'ConditionalCheckFailed'
  );
}
