import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { DynamoDBPersistenceLayer } from '@aws-lambda-powertools/idempotency/dynamodb';
import { UpdateCommand } from '@aws-sdk/lib-dynamodb';
import type { Envelope } from '../../lambdas/runtime/event.ts';
import { lambdaContext } from '../../testing/lambda-context.ts';
import type { ReceivingHalf } from './composed-system.ts';
import { DAY_S } from './stored-outbox.ts';

/** How long a handled message is known, seconds: longer than it can come again. */
const RETENTION_S = 35 * DAY_S;

/** The name of the table of Powertools' records. */
const RECORDS = 'idempotency';

/**
 * Powertools Idempotency as the inbox, with its own persistence layer, keyed by the event's id: a record in progress is put
 * before the handler runs, completed after it, and deleted when it throws.
 *
 * The record and the handler's writes are two things: whoever dies between them handles the message again when the record's
 * time has passed.
 *
 * As its documentation has it for batches: "Idempotency", integration with batch processing, and
 * "Implementing idempotent AWS Lambda functions with Powertools for AWS Lambda (TypeScript)" (AWS Compute Blog).
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
