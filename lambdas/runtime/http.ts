import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { DynamoDBPersistenceLayer } from '@aws-lambda-powertools/idempotency/dynamodb';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Context } from 'aws-lambda';
import { errorCode, MailroomError } from './base/errors.ts';
import { requireGiven } from './base/given-names.ts';
import { jsonFault } from './base/json-fault.ts';
import { maskedPath } from './events/payload-issues.ts';

/** The answer to an HTTP request. A handler behind a function URL or an API Gateway can return it as it is. */
export interface HttpAnswer {
  readonly statusCode: number;
  /** Names in lowercase. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON, to be sent byte for byte. */
  readonly body: string;
}

/** The reason why a request was refused, for its sender. */
export interface HttpProblem {
  /** A stable, uppercase name. */
  readonly code: string;
  /** The reason, one sentence. */
  readonly message: string;
  /** The next step of the sender. */
  readonly remedy?: string | undefined;
  /** The invalid part of the request, e.g. `items.0.quantity` or `Idempotency-Key`. */
  readonly field?: string | undefined;
}

/** Makes the answer to a refused request: `{ "error": { code, message, remedy, field } }`. */
export function httpProblem(
  statusCode: number,
  problem: HttpProblem,
  headers: Readonly<Record<string, string>> = {},
): HttpAnswer {
  return json(statusCode, JSON.stringify({ error: problem }), headers);
}

/** A request that its sender may repeat under one `Idempotency-Key`, and the work that it requests. */
export interface IdempotentRequest {
  /** The value of the header `Idempotency-Key`; `undefined` or `null` if the request has none. */
  readonly idempotencyKey: string | null | undefined;
  /**
   * The identity of the authenticated caller, because two callers may choose the same key. Pass it with every request of an
   * operation or with none.
   */
  readonly caller?: string | undefined;
  /** The content, as JSON. A repeated request must have the same, apart from the order of properties. */
  readonly payload: unknown;
  /**
   * The number of milliseconds after which this process has certainly stopped working on the request: in Lambda
   * `context.getRemainingTimeInMillis()`, elsewhere the server's limit. If the process dies, the key is blocked for that long.
   */
  readonly remainingMs: number;
  /** The status of the first answer and of its replays. @default 201 */
  readonly statusCode?: number | undefined;
  /** Further headers of the first answer and of its replays, computed from the key. */
  readonly headers?: ((key: string) => Readonly<Record<string, string>>) | undefined;
  /**
   * Does the work. It may run again, even concurrently, so **the commit itself must refuse a second run**: derive the id of
   * a row from `key`, and write that row on condition that it does not exist. If it throws, no answer is stored.
   *
   * @param key - the idempotency key, prefixed with the caller if there is one
   * @returns the body of the answer, JSON
   */
  readonly first: (key: string) => Promise<string>;
  /**
   * Finds what an earlier run committed, by a consistent read of that row. Called while another run is in progress, and when
   * `first` throws.
   *
   * @returns `undefined` if nothing is committed
   */
  readonly earlier: (key: string) => Promise<EarlierAnswer | undefined>;
}

/** The answer of an earlier run, rebuilt from what it committed. */
export interface EarlierAnswer {
  /** The body that `first` returned. */
  readonly body: string;
  /** False if the earlier run had another payload: the key was reused. */
  readonly samePayload: boolean;
}

/**
 * Answers requests as {@link createOncePerKey} describes.
 *
 * @throws the error of `first`, if nothing is committed; errors of DynamoDB. Answer 5xx: the same request can be sent again
 * @throws `BAD_ARGUMENT` if `remainingMs` is not a finite number, or `payload` cannot be written as JSON
 */
export type OncePerKey = (request: IdempotentRequest) => Promise<HttpAnswer>;

/** Dependencies of {@link createOncePerKey}. */
export interface OncePerKeyDeps {
  readonly client: DynamoDBClient;
  /** The Mailroom table. Its rows are `REQUEST#<key>`: add `REQUEST#*` to the function's `domainKeys`. */
  readonly tableName: string;
  /** The name of the operation, e.g. `orders`: a key may be used once for each. */
  readonly operation: string;
}

/**
 * Runs the work of an HTTP request once per idempotency key, and answers each repeated request as the first one.
 *
 * | request | answer |
 * | --- | --- |
 * | the first with its key | the status of the request (201), stored for a day |
 * | the same again | the same status, headers and body, and `idempotent-replayed: true` |
 * | the same, while the first is in progress | 409 `REQUEST_IN_PROGRESS` with `retry-after` |
 * | the key with another payload | 422 `IDEMPOTENCY_KEY_REUSED` |
 * | no key | 400 `IDEMPOTENCY_KEY_MISSING` |
 * | a key that is not 1 to 255 visible ASCII characters | 400 `INVALID_REQUEST` |
 *
 * Needs `@aws-lambda-powertools/idempotency`, which stores the answers. Powertools completes and removes its records without
 * checking who owns them, and they expire. Therefore they only spare work: the condition of your commit decides, and
 * `earlier` answers from what was committed.
 *
 * @throws `BAD_ARGUMENT` if `operation` is not 1 to 64 letters, digits, dots, dashes and underscores
 *
 * @example
 * ```ts
 * const oncePerKey = createOncePerKey({ client, tableName, operation: 'orders' });
 * const answer = await oncePerKey({
 *   idempotencyKey: request.headers['idempotency-key'],
 *   payload: order,
 *   remainingMs: context.getRemainingTimeInMillis(),
 *   first: async (key) => placeOrder(orderIdOf(key), order),
 *   earlier: async (key) => placedOrder(orderIdOf(key), order),
 * });
 * ```
 */
export function createOncePerKey(deps: OncePerKeyDeps): OncePerKey {
  requireGiven('createOncePerKey', deps, 'client', 'tableName', 'operation');
  const { client, tableName, operation } = deps;
  if (!/^[\w.-]{1,64}$/.test(operation)) {
    const allowed = '1 to 64 letters, digits, dots, dashes and underscores';
    throw new MailroomError('BAD_ARGUMENT', `The operation is "${operation}"; allowed: ${allowed}.`);
  }

  return async (request) => {
    const { idempotencyKey, caller, payload = null, statusCode = 201, headers, first, earlier } = request;
    if (idempotencyKey === undefined || idempotencyKey === null) return keyMissing();
    if (!IDEMPOTENCY_KEY.test(idempotencyKey)) return keyInvalid(idempotencyKey);
    refuseLossyPayload(payload);
    // Encoded, so that no caller can end in the middle of another one's key.
    const key = caller === undefined ? idempotencyKey : `${encodeURIComponent(caller)}/${idempotencyKey}`;
    let replayed = true;

    const committed = async (): Promise<string | undefined> => {
      const found = await earlier(key);
      if (found?.samePayload === false) throw new KeyReused();
      return found?.body;
    };
    const work = async (_: { readonly key: string; readonly payload: unknown }): Promise<string> => {
      try {
        const body = await first(key);
        replayed = false;
        return body;
      } catch (error) {
        const body = await committed();
        if (body === undefined) throw error;
        return body;
      }
    };
    const once = makeIdempotent(work, {
      persistenceStore: recordsOf(client, tableName, key),
      config: configFor(request),
      keyPrefix: operation,
    });
    try {
      const body = await once({ key, payload }).catch((error: unknown) => {
        if (errorCode(error) === 'IdempotencyAlreadyInProgressError') return committed();
        throw error;
      });
      if (body === undefined) return inProgress();
      return json(statusCode, body, {
        ...headers?.(key),
        ...(replayed && { 'idempotent-replayed': 'true' }),
      });
    } catch (error) {
      if (error instanceof KeyReused || errorCode(error) === 'IdempotencyValidationError') return keyReused();
      throw error;
    }
  };
}

/** Requests are compared by their JSON: two payloads whose difference JSON drops would count as one request. */
function refuseLossyPayload(payload: unknown): void {
  const fault = jsonFault(payload);
  if (fault === undefined) return;
  throw new MailroomError(
    'BAD_ARGUMENT',
    `The payload cannot be written as JSON: ${maskedPath('payload', fault.path)} is ${fault.kind}. ${fault.remedy}`,
  );
}

/** 1 to 255 visible ASCII characters. */
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

/** The time for which answers are stored, seconds. After that, `earlier` provides them. */
const ANSWER_RETENTION_S = 86_400;

/** The commit under the key belongs to another payload. */
class KeyReused extends Error {}

/** One layer per key, because a layer has one partition key: a shared one would put all requests into one partition. */
function recordsOf(client: DynamoDBClient, tableName: string, key: string) {
  return new DynamoDBPersistenceLayer({
    tableName,
    awsSdkV3Client: client,
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

function configFor({ remainingMs }: IdempotentRequest): IdempotencyConfig {
  if (!Number.isFinite(remainingMs)) {
    const allowed = 'a finite number, such as context.getRemainingTimeInMillis()';
    throw new MailroomError('BAD_ARGUMENT', `remainingMs is ${remainingMs}; allowed: ${allowed}.`);
  }
  // Powertools treats a remaining time of 0 as unknown, and then blocks the key for as long as answers are stored.
  const lambdaContext = { getRemainingTimeInMillis: () => Math.max(1, Math.ceil(remainingMs)) } as Context;
  return new IdempotencyConfig({
    eventKeyJmesPath: 'key',
    payloadValidationJmesPath: 'payload',
    throwOnNoIdempotencyKey: true,
    hashFunction: 'sha256',
    expiresAfterSeconds: ANSWER_RETENTION_S,
    lambdaContext,
  });
}

function json(statusCode: number, body: string, headers: Readonly<Record<string, string>>): HttpAnswer {
  return { statusCode, headers: { 'content-type': 'application/json', ...headers }, body };
}

const field = 'Idempotency-Key';

function keyMissing(): HttpAnswer {
  const message = 'The header Idempotency-Key is missing.';
  const remedy = 'Send a new random value with each new request, and the same value when you repeat it.';
  return httpProblem(400, { code: 'IDEMPOTENCY_KEY_MISSING', message, remedy, field });
}

function keyInvalid({ length }: string): HttpAnswer {
  const message = `The header Idempotency-Key has ${length} characters; it must be 1 to 255 visible ASCII characters.`;
  const remedy = 'Send a random value, such as a UUID.';
  return httpProblem(400, { code: 'INVALID_REQUEST', message, remedy, field });
}

function keyReused(): HttpAnswer {
  const message = 'This Idempotency-Key was used for another request.';
  const remedy = 'Use a new key for a new request.';
  return httpProblem(422, { code: 'IDEMPOTENCY_KEY_REUSED', message, remedy, field });
}

function inProgress(): HttpAnswer {
  const message = 'A request with this Idempotency-Key is in progress.';
  const remedy = 'Send it again with the same key after the time in the header Retry-After.';
  return httpProblem(409, { code: 'REQUEST_IN_PROGRESS', message, remedy, field }, { 'retry-after': '1' });
}
