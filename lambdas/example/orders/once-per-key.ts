import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { DynamoDBPersistenceLayer } from '@aws-lambda-powertools/idempotency/dynamodb';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Context } from 'aws-lambda';
import { errorCode } from '../../runtime/index.ts';
import type { OrderRequest } from '../events.ts';

/** What Powertools keeps its records in. */
export type RequestRecords = Parameters<typeof makeIdempotent>[1]['persistenceStore'];

/** What became of a request. */
type RequestOutcome =
  /** It ran now, or it ran before and this is the stored answer. */
  | { readonly kind: 'answer'; readonly body: string }
  /** The key was used for a request with another content. */
  | { readonly kind: 'other-request' }
  /** A run with this key has begun and has not ended; it may also have died. */
  | { readonly kind: 'in-progress' };

/** Runs a request's work once per idempotency key and stores the answer. */
export type OncePerKey = (
  key: string,
  request: OrderRequest,
  context: Context,
  work: () => Promise<string>,
) => Promise<RequestOutcome>;

/** For how long answers are stored. After that the order's own row answers. */
const ANSWER_RETENTION_S = 86_400;

/**
 * HTTP idempotency by Powertools. A run that throws leaves no answer: its record is removed and the next
 * request with the key runs again.
 *
 * Powertools completes and removes its records without asking who owns them now. That is harmless here only
 * because the work itself is safe to repeat and answers the same each time.
 *
 * @param deps.recordsFor - the records of one key, see {@link requestRecords}
 */
export function createOncePerKey(deps: { readonly recordsFor: (key: string) => RequestRecords }): OncePerKey {
  return async (key, request, context, work) => {
    const config = new IdempotencyConfig({
      eventKeyJmesPath: 'key',
      payloadValidationJmesPath: 'request',
      throwOnNoIdempotencyKey: true,
      hashFunction: 'sha256',
      expiresAfterSeconds: ANSWER_RETENTION_S,
      lambdaContext: withTimeLeft(context),
    });
    const once = makeIdempotent(async (_: { key: string; request: OrderRequest }) => work(), {
      persistenceStore: deps.recordsFor(key),
      config,
      keyPrefix: 'orders',
    });
    try {
      return { kind: 'answer', body: await once({ key, request }) };
    } catch (error) {
      if (errorCode(error) === 'IdempotencyValidationError') return { kind: 'other-request' };
      if (errorCode(error) === 'IdempotencyAlreadyInProgressError') return { kind: 'in-progress' };
      throw error;
    }
  };
}

/**
 * The records of one key in the Mailroom table: `REQUEST#<key>` / `orders#<hash of the key>`. The layer's
 * partition key is fixed when it is made, so each request makes its own; one layer for all of them would put
 * every request of the API into one partition. The rows are of Powertools' shape and carry no `schema`.
 */
export function requestRecords(deps: { readonly client: DynamoDBClient; readonly tableName: string }) {
  return (key: string): RequestRecords =>
    new DynamoDBPersistenceLayer({
      tableName: deps.tableName,
      awsSdkV3Client: deps.client,
      keyAttr: 'PK',
      sortKeyAttr: 'SK',
      staticPkValue: `REQUEST#${key}`,
      statusAttr: 'status',
      // Epoch seconds: the table's TTL attribute. The other time is epoch milliseconds, as everywhere.
      expiryAttr: 'expiresAt',
      inProgressExpiryAttr: 'leaseUntil',
      dataAttr: 'answer',
      validationKeyAttr: 'requestHash',
    });
}

/**
 * A run's record blocks its key until the function would have been stopped. Powertools takes a remaining time of
 * 0 for "not known" and then blocks for as long as answers are stored, so there is always a millisecond left.
 */
function withTimeLeft(context: Context): Context {
  return { ...context, getRemainingTimeInMillis: () => Math.max(1, context.getRemainingTimeInMillis()) };
}
