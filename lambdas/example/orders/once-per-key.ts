import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { DynamoDBPersistenceLayer } from '@aws-lambda-powertools/idempotency/dynamodb';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Context } from 'aws-lambda';
import { errorCode } from '../../runtime/index.ts';
import type { OrderRequest } from '../events.ts';

/** The store of Powertools' records. */
export type RequestRecords = Parameters<typeof makeIdempotent>[1]['persistenceStore'];

/** The outcome of a request. */
type RequestOutcome =
  /** It ran now, or it ran before and this is the stored response. */
  | { readonly kind: 'answer'; readonly body: string }
  /** The key was used for a request with different content. */
  | { readonly kind: 'other-request' }
  /** A run with this key has started but not ended; it may also have crashed. */
  | { readonly kind: 'in-progress' };

/** Runs a request's work once per idempotency key and stores the response. */
export type OncePerKey = (
  key: string,
  request: OrderRequest,
  context: Context,
  work: () => Promise<string>,
) => Promise<RequestOutcome>;

/** The time for which responses are stored, seconds. After that, the order's own row provides the response. */
const ANSWER_RETENTION_S = 86_400;

/**
 * HTTP idempotency with Powertools. A run that throws stores no response: its record is removed, and the next request with the key
 * runs again.
 *
 * Powertools completes and removes its records without checking who owns them. That is harmless here only because the work itself
 * can be repeated safely and returns the same response each time.
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
 * The records of one key in the Mailroom table: `REQUEST#<key>` / `orders#<hash of the key>`. The layer's partition key is fixed
 * when the layer is created, so each request creates its own; one shared layer would put all requests of the API into one
 * partition. The rows have Powertools' shape and no `schema`.
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
      // Epoch seconds: the table's TTL attribute. The other time is in epoch milliseconds, as everywhere else.
      expiryAttr: 'expiresAt',
      inProgressExpiryAttr: 'leaseUntil',
      dataAttr: 'answer',
      validationKeyAttr: 'requestHash',
    });
}

/**
 * A run's record blocks its key until the function would have been stopped. Powertools treats a remaining time of 0 as unknown and
 * then blocks for as long as responses are stored, so the remaining time is at least 1 ms.
 */
function withTimeLeft(context: Context): Context {
  return { ...context, getRemainingTimeInMillis: () => Math.max(1, context.getRemainingTimeInMillis()) };
}
