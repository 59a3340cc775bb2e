import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { DynamoDBPersistenceLayer } from '@aws-lambda-powertools/idempotency/dynamodb';
import { UpdateCommand } from '@aws-sdk/lib-dynamodb';
import type { Envelope } from '../../lambdas/runtime/events/event.ts';
import { lambdaContext } from '../../testing/lambda-context.ts';
import type { ReceivingHalf } from './composed-system.ts';
import { DAY_S } from './stored-outbox.ts';

/** The time that a handled message is remembered, in seconds: longer than it can be redelivered. */
const RETENTION_S = 35 * DAY_S;

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
  effects: 'may double',
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
