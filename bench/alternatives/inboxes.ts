import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { DynamoDBPersistenceLayer } from '@aws-lambda-powertools/idempotency/dynamodb';
import { TransactionCanceledException } from '@aws-sdk/client-dynamodb';
import { TransactWriteCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import type { Envelope } from '../../lambdas/runtime/events/event.ts';
import { lambdaContext } from '../../testing/lambda-context.ts';
import { DAY_S } from './outbox-rows.ts';
import type { ReceivingHalf } from './system.ts';

/** The time that a handled message is remembered, in seconds: longer than it can be redelivered. */
const RETENTION_S = 35 * DAY_S;

/** A consumer without an inbox: a duplicate message is handled twice. */
export const plainConsumer: ReceivingHalf = {
  name: 'plain',
  effects: 'may duplicate',
  tables: [],
  consumer: (run, name) => async (event) => {
    await run.documents.send(new UpdateCommand(run.handle(name, event)));
  },
};

/** The table of Powertools' records. */
const RECORDS = 'idempotency';

/**
 * Powertools Idempotency as the inbox, with its own persistence layer, keyed by the event's id: an in-progress record is put
 * before the handler runs, completed after it, and deleted if it throws.
 *
 * The record and the handler's writes are separate: after a crash between them, the message is handled again once the record has
 * expired.
 *
 * Implemented as its documentation describes for batches: "Idempotency", integration with batch processing, and "Implementing
 * idempotent AWS Lambda functions with Powertools for AWS Lambda (TypeScript)" (AWS Compute Blog).
 */
export const powertoolsInbox: ReceivingHalf = {
  name: 'powertools',
  effects: 'may duplicate',
  tables: [{ name: RECORDS, keys: ['id'] }],
  consumer: (run, name) => {
    const persistenceStore = new DynamoDBPersistenceLayer({
      tableName: RECORDS,
      awsSdkV3Client: run.dynamodb,
    });
    const config = new IdempotencyConfig({ eventKeyJmesPath: 'eventId', expiresAfterSeconds: RETENTION_S });
    config.registerLambdaContext(lambdaContext());
    return makeIdempotent(
      async (event: Envelope) => {
        await run.documents.send(new UpdateCommand(run.handle(name, event)));
      },
      { persistenceStore, config, keyPrefix: name },
    );
  },
};

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
    const Item = {
      messageId: `${name}#${event.eventId}`,
      handledAt: now,
      expiresAt: Math.ceil(now / 1_000) + RETENTION_S,
    };
    const Put = { TableName: INBOX, Item, ConditionExpression: 'attribute_not_exists(messageId)' };
    try {
      await run.documents.send(new TransactWriteCommand({ TransactItems: [{ Put }, { Update: write }] }));
    } catch (error) {
      const isCancelled = error instanceof TransactionCanceledException;
      // The row of a message that was handled already cancels the transaction.
      if (!isCancelled || error.CancellationReasons?.[0]?.Code !== 'ConditionalCheckFailed') throw error;
    }
  },
};
