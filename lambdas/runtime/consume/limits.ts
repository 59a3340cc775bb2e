import type { ProcessingConfig } from '../base/consumer-config.ts';
import { errorClass, MailroomError } from '../base/errors.ts';
import { nameProblems, type PropNames } from '../base/given-names.ts';
import { hasLoneSurrogate } from '../base/json.ts';
import { poison } from '../base/poison.ts';
import type { EventOf, HandledDefinition, HandledEvent } from '../events/external-event.ts';
import type { TokenRate } from '../inbox/limit-bucket.ts';
import { type LimitOf, limitKey } from '../store/keys.ts';
import type { Key } from '../store/table.ts';

/**
 * The most runs of a handler for each key, in a time and at once. A rate is a bucket of `burst` tokens, of which each run takes one, and
 * `perSecond` return; a concurrency is a number of places, of which each run holds one. It has one of both, or both.
 */
export interface Limit<E extends HandledDefinition> {
  /**
   * Returns what is limited, e.g. the id of a merchant: 1 to 1,024 bytes. Each key has its own bucket. It gets the event in its current version,
   * validated. If it throws or returns anything else, the message is rejected with `BAD_LIMIT_KEY`.
   */
  readonly key: (event: EventOf<E>) => string;
  /**
   * The tokens that return per second: more than 0 and at most 300, and at least one within the consumer's lease (`0.034` with 30 seconds).
   *
   * @default no rate; then it needs a `concurrency`
   */
  readonly perSecond?: number | undefined;
  /** The most tokens of a bucket, so the runs that may start at once after a pause: a whole number from 1 to 1,000. @default 1 */
  readonly burst?: number | undefined;
  /**
   * The most runs at the same time: a whole number from 1 to 50. A run that its process did not survive counts until its function would have been
   * stopped.
   *
   * @default no maximum
   */
  readonly concurrency?: number | undefined;
  /**
   * The name of the limit: 1 to 64 letters, digits, dots, dashes and underscores. All handlers with this name share its buckets, in every consumer of
   * the Mailroom; give each the same numbers.
   *
   * @default the handler has its own buckets
   */
  readonly name?: string | undefined;
}

/** A {@link Limit} of a handler of any event. */
export interface HandlerLimit extends Omit<Limit<HandledDefinition>, 'key'> {
  /** Its {@link Limit.key}. */
  readonly key: (event: never) => string;
}

/** A handler that may have a limit. */
interface LimitedHandler {
  readonly kind: 'leased' | 'transactional';
  readonly definition: HandledDefinition;
  readonly limit?: HandlerLimit | undefined;
}

/** The bucket of one message, and its name for people. */
export interface MessageBucket {
  readonly name: string;
  readonly key: string;
  readonly row: Key;
  /** Absent: the limit has no rate. */
  readonly pace?: TokenRate | undefined;
  readonly limit: HandlerLimit;
}

const MEMBERS: PropNames<HandlerLimit> = {
  key: 'required',
  perSecond: 'optional',
  burst: 'optional',
  concurrency: 'optional',
  name: 'optional',
};

const NAME = /^[A-Za-z0-9._-]{1,64}$/;

/** A row takes 1,000 write units per second (DynamoDB service quotas), and a token takes up to 2, a slot up to 3. */
const PER_SECOND_MAX = 300;

const BURST_MAX = 1_000;

/** A place takes 46 bytes of the row, and each KB of it costs a write unit. */
const CONCURRENCY_MAX = 50;

/** The most bytes of UTF-8 of a key, and of what precedes it in the key of its row: a partition key has at most 2,048. */
const KEY_BYTES_MAX = 1_024;

/**
 * Checks the limits of a consumer's handlers.
 *
 * @param canLimit - false if its storage or its source cannot
 * @throws `BAD_CONSUMER`, naming the member, if one cannot be used, or two of one name differ
 */
export function checkLimits(
  handlers: readonly LimitedHandler[],
  config: ProcessingConfig,
  canLimit: boolean,
): void {
  const byName = new Map<string, HandlerLimit>();
  for (const handler of handlers) {
    if (handler.limit === undefined) continue;
    const [problem] = problemsOf(handler, handler.limit, config, canLimit);
    if (problem !== undefined) throw badLimit(handler, problem);
    const { name } = handler.limit;
    if (name === undefined) continue;
    const other = byName.get(name) ?? handler.limit;
    byName.set(name, other);
    for (const member of ['perSecond', 'burst', 'concurrency'] as const) {
      if (memberOf(other, member) === memberOf(handler.limit, member)) continue;
      throw badLimit(
        handler,
        `limit.${member} is ${memberOf(handler.limit, member) ?? 'absent'}, and ${memberOf(other, member) ?? 'absent'} in another handler with the limit "${name}". Give both the same, or another name.`,
      );
    }
  }
}

function memberOf(limit: HandlerLimit, member: 'perSecond' | 'burst' | 'concurrency'): number | undefined {
  return member === 'burst' && limit.perSecond !== undefined ? (limit.burst ?? 1) : limit[member];
}

function badLimit({ definition }: LimitedHandler, problem: string): MailroomError {
  return new MailroomError('BAD_CONSUMER', `The handler of ${definition.type}: ${problem}`);
}

function problemsOf(
  handler: LimitedHandler,
  limit: HandlerLimit,
  { consumer, leaseMs, order }: ProcessingConfig,
  canLimit: boolean,
): string[] {
  if (!canLimit)
    return [
      'limit needs a consumer whose inbox is in DynamoDB and whose messages come from SQS. Remove it, or limit the calls in the handler and throw RetryLater.',
    ];
  if (handler.kind !== 'leased')
    return ['limit is for leased handlers: a transactional one calls no provider. Create it with leased(…).'];
  if (order?.mode === 'strict')
    return [
      'limit cannot be combined with a consumer of `order: strict`: the messages behind one that waits for its slot would use up their receives. Remove the limit, or the order.',
    ];
  const wrongNames =
    typeof limit === 'object'
      ? nameProblems(limit ?? undefined, MEMBERS, 'limit.')
      : [`limit is of type ${typeof limit}; it must be an object with key, and perSecond or concurrency.`];
  if (wrongNames.length > 0) return wrongNames;
  const { key, name } = limit;
  if (name !== undefined && !(typeof name === 'string' && NAME.test(name)))
    return [
      `limit.name is ${JSON.stringify(String(name))}; it must have 1 to 64 letters, digits, dots, dashes and underscores.`,
    ];
  const prefix = Buffer.byteLength(limitKey(limitOf(handler, limit, consumer), '').PK);
  return [
    ...(typeof key === 'function'
      ? []
      : [`limit.key is of type ${typeof key}; it must be a function of the event.`]),
    ...numberProblems(limit, leaseMs),
    ...(prefix <= KEY_BYTES_MAX
      ? []
      : [`the names of the consumer and of the event leave no room for a key of its limit. Set limit.name.`]),
  ];
}

function numberProblems({ perSecond, burst, concurrency }: HandlerLimit, leaseMs: number): string[] {
  if (perSecond === undefined && concurrency === undefined)
    return ['limit has neither perSecond nor concurrency. Set one of them, or both.'];
  const wholeNumber = (name: string, value: number, max: number) =>
    Number.isSafeInteger(value) && value >= 1 && value <= max
      ? []
      : [`limit.${name} is ${shown(value)}; it must be a whole number from 1 to ${max}.`];
  return [
    ...(perSecond === undefined ? [] : rateProblems(perSecond, leaseMs)),
    ...(burst === undefined ? [] : wholeNumber('burst', burst, BURST_MAX)),
    ...(burst === undefined || perSecond !== undefined
      ? []
      : [
          `limit.burst is ${String(burst)} without perSecond: a burst is of a rate. Set perSecond, or remove it.`,
        ]),
    ...(concurrency === undefined ? [] : wholeNumber('concurrency', concurrency, CONCURRENCY_MAX)),
  ];
}

/** A value that may be of any type: a text has quotes. */
function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}

function rateProblems(perSecond: number, leaseMs: number): string[] {
  const leastPerSecond = 1_000 / leaseMs;
  if (!(Number.isFinite(perSecond) && perSecond > 0 && perSecond <= PER_SECOND_MAX))
    return [`limit.perSecond is ${shown(perSecond)}; it must be more than 0 and at most ${PER_SECOND_MAX}.`];
  if (perSecond >= leastPerSecond) return [];
  return [
    `limit.perSecond is ${perSecond}; it must be at least ${Math.ceil(leastPerSecond * 1_000) / 1_000}, one run per lease of ${leaseMs / 1_000} s. Raise it, or the consumer's lease.`,
  ];
}

/** The rate of a limit. A token returns in whole microseconds, rounded up. */
export function paceOf({
  perSecond,
  burst = 1,
}: {
  readonly perSecond: number;
  readonly burst?: number | undefined;
}): TokenRate {
  const everyMs = Math.ceil(1_000_000 / perSecond) / 1_000;
  return { everyMs, burstMs: (burst - 1) * everyMs };
}

/**
 * The bucket of a message.
 *
 * @param event - as its handler receives it
 * @throws `BAD_LIMIT_KEY` if the handler's function makes no key of it: a retry cannot succeed
 */
export function bucketOf(
  consumer: string,
  handler: LimitedHandler,
  limit: HandlerLimit,
  event: HandledEvent,
): MessageBucket {
  const { type } = handler.definition;
  const key = keyOf(limit, type, event);
  const row = limitKey(limitOf(handler, limit, consumer), key);
  const { perSecond, burst, name = type } = limit;
  return { name, key, row, limit, pace: perSecond === undefined ? undefined : paceOf({ perSecond, burst }) };
}

function limitOf({ definition }: LimitedHandler, { name }: HandlerLimit, consumer: string): LimitOf {
  const { source, type } = definition;
  return name === undefined ? { consumer, source, type } : { name };
}

function keyOf(limit: HandlerLimit, type: string, event: HandledEvent): string {
  let key: unknown;
  try {
    key = limit.key(event as never);
  } catch (error) {
    // Its text may quote the payload.
    throw badKey(type, `threw ${errorClass(error)}`, error);
  }
  // Unhandled, its rejection would end the process, with all messages of the batch.
  if (key instanceof Promise) key.catch(() => {});
  if (typeof key !== 'string') throw badKey(type, `returned ${key === null ? 'null' : typeof key}`);
  const bytes = Buffer.byteLength(key);
  if (bytes < 1 || bytes > KEY_BYTES_MAX) throw badKey(type, `returned a string of ${bytes} bytes`);
  if (hasLoneSurrogate(key)) throw badKey(type, 'returned a string with half of a surrogate pair');
  return key;
}

function badKey(type: string, what: string, cause?: unknown): MailroomError {
  return poison(
    'BAD_LIMIT_KEY',
    `limit.key of the handler of ${type} ${what}; it must return a string of 1 to ${KEY_BYTES_MAX} bytes. Correct it, then redrive the message.`,
    { cause },
  );
}
