import { withDeadline } from '../base/clock.ts';
import type { InboxConfig } from '../base/consumer-config.ts';
import { MailroomError } from '../base/errors.ts';
import { requireGiven } from '../base/given-names.ts';
import {
  type ConsumerContext,
  consumerContext,
  type ProcessingDeps,
  receivedOf,
} from '../consume/consumer-context.ts';
import { type Delivery, readDelivery } from '../consume/delivery.ts';
import type { Handler } from '../consume/handler.ts';
import { again, type MessageOutcome, reportLeased, reportOutage } from '../consume/message-outcome.ts';
import { outOfTime } from '../consume/out-of-time.ts';
import { handlersByEvent, work } from '../consume/receive.ts';
import { type Turn, turnOf } from '../consume/turn.ts';
import type { EventRef } from '../events/event.ts';
import { isExternal } from '../events/external-event.ts';
import { flushSpans } from '../observe/tracer.ts';
import type { Table } from '../store/table.ts';
import { createBodyDecoder, type DecodeBody, type Decoded } from './body-decoder.ts';
import { type AnswerReason, answerOf, type MessageAnswer } from './message-answer.ts';
import { createSourceEntry, type SourceEntry } from './source-entry.ts';
import { deliveryOf, type SourceMessage } from './source-message.ts';
import { createTurns } from './turns.ts';

/** Dependencies of {@link createInboxProcessor}. */
export interface InboxProcessorDeps extends ProcessorDeps {
  /** From `readInboxConfig(process.env)`. */
  readonly config: InboxConfig;
  /** The Mailroom table. */
  readonly table: Table;
}

/** Dependencies of an inbox processor, whatever its store. */
export interface ProcessorDeps extends ProcessingDeps {
  /**
   * The time that a handler has in a process, milliseconds, from 10,000. Afterwards other workers assume that it has stopped: they wait for that
   * long after a crash during an effect. In Lambda, the function's timeout applies.
   *
   * @default 60,000
   */
  readonly handlerTimeoutMs?: number | undefined;
  /**
   * Stops this process. It is called if an effect still runs when its handler's time is over: another worker may then start the same
   * effect, so this one must end, as Lambda ends a function. It must not return before the process ends.
   *
   * @default `process.exit(1)`, for a supervisor that starts the process again
   */
  readonly stopProcess?: (() => void) | undefined;
  /**
   * Turns the body of each message into JSON, e.g. Avro by a schema registry; returns `undefined` for a message to skip. Its errors are retried
   * with the delays and the number of the consumer's attempts, counted in this process; a `PoisonMessage` rejects the message.
   *
   * @default JSON is read, also with a byte order mark, in a frame of a schema registry or encoded twice; a tombstone (`null`) is skipped
   */
  readonly decode?: DecodeBody | undefined;
}

/** Options of {@link InboxProcessor.process}. */
export interface ProcessOptions {
  /** The time until this process is certainly stopped, e.g. `context.getRemainingTimeInMillis()`. @default `handlerTimeoutMs` */
  readonly remainingMs?: number | undefined;
  /**
   * Keeps a rejected message where dead letters are kept, before the answer. If it throws, the answer is a retry, and it is called again then.
   *
   * @default the caller does
   */
  readonly keep?: ((reason: AnswerReason) => Promise<unknown>) | undefined;
}

/**
 * Processes messages of any source that delivers each at least once.
 *
 * @typeParam H - the handlers of its storage: those of a table in DynamoDB, or those of `postgresHandlers`
 */
export interface InboxProcessor<H = Handler> {
  /** The consumer's name. */
  readonly consumer: string;
  /**
   * Processes one message: it claims the message in the inbox, runs its handler with a lease that is renewed meanwhile, and records the
   * end. It may be called concurrently. It does not throw for a message, whatever its content: the row or the answer has the error.
   *
   * @param handler - the handler, or one for each event
   * @throws `BAD_CONSUMER`, `BAD_CONFIG` if a handler cannot be used
   */
  process(
    message: SourceMessage,
    handler: H | readonly H[],
    options?: ProcessOptions,
  ): Promise<MessageAnswer>;
  /**
   * The events of handlers.
   *
   * @param from - where their messages come from, e.g. `Kafka`: the consumer's entry in the directory names it
   * @throws as {@link InboxProcessor.process}
   */
  handles(handler: H | readonly H[], from?: string): readonly EventRef[];
}

/** The time after which a message that could not be kept is delivered again, milliseconds. */
const KEEP_AGAIN_MS = 60_000;

/** The time for keeping a dead letter, milliseconds: a call that hangs must not hold its message, nor those behind it, for longer. */
const KEEP_MAX_MS = 30_000;

/** The time that remains for the answer to Lambda, milliseconds. */
const ANSWER_MS = 3_000;

const HANDLER_TIMEOUT_MS = 60_000;

/**
 * Creates the inbox of a consumer whose messages come from Kafka, Kinesis, JetStream, RabbitMQ or any other source, with the rows, leases,
 * retries and rejections of a consumer of SQS.
 *
 * @throws `BAD_ARGUMENT` if `handlerTimeoutMs` is below 10,000
 *
 * @example
 * ```ts
 * const config = readInboxConfig(process.env);
 * const table = dynamoTable({ client: new DynamoDBClient(clientSettings), tableName: config.tableName });
 * const inbox = createInboxProcessor({ config, table });
 * const answer = await inbox.process({ id: 'orders/0/17', body }, leased(OrderPlaced, charge));
 * ```
 */
export function createInboxProcessor(deps: InboxProcessorDeps): InboxProcessor {
  requireGiven('createInboxProcessor', deps, 'config', 'table');
  const ctx = consumerContext(deps);
  return processorIn(ctx, deps, createSourceEntry(ctx));
}

/**
 * As {@link createInboxProcessor}, with any storage.
 *
 * @param entry - the consumer's entry in the directory @default it has none
 */
export function processorIn(
  ctx: ConsumerContext,
  {
    handlerTimeoutMs = HANDLER_TIMEOUT_MS,
    stopProcess = () => process.exit(1),
    redact,
    decode,
  }: Pick<ProcessorDeps, 'handlerTimeoutMs' | 'stopProcess' | 'redact' | 'decode'>,
  entry?: SourceEntry,
): InboxProcessor {
  if (!(handlerTimeoutMs >= 10_000)) {
    const message = `createInboxProcessor: handlerTimeoutMs is ${handlerTimeoutMs}; it must be at least 10,000. Make it longer than the longest run of a handler.`;
    throw new MailroomError('BAD_ARGUMENT', message);
  }
  const { config, clock, telemetry } = ctx;
  const turns = createTurns();
  const decoded = createBodyDecoder(ctx, decode);
  let open = 0;

  const preparedOnce = handlersOnce(ctx);

  const processed = async (
    message: SourceMessage,
    handler: Handler | readonly Handler[],
    remainingMs?: number,
  ): Promise<MessageOutcome> => {
    const { definitions, byEvent, external } = preparedOnce(handler);
    const calledAt = clock.now();
    const renewing = entry?.renew(definitions);
    if (renewing !== undefined) await renewing;
    telemetry.count('MessagesReceived');
    const reading: Decoded =
      decode === undefined && message.body !== null
        ? { body: message.body }
        : await decoded(message, remainingMs === undefined ? handlerTimeoutMs : remainingMs - ANSWER_MS);
    if ('outcome' in reading) return reading.outcome;
    const read = deliveryOf('body' in reading ? { ...message, body: reading.body } : message, definitions);
    const time = () => {
      const beganAt = clock.now();
      return {
        beganAt,
        endsBy: remainingMs === undefined ? beganAt + handlerTimeoutMs : calledAt + remainingMs,
      };
    };
    const given = 'problem' in reading ? { ...read, problem: reading.problem } : read;
    const received = readDelivery(given, time(), external);
    const turn = await waitOrTurn(ctx, received);
    if ('kind' in turn) return turn;
    const run = async () => {
      const delivery: Delivery = { ...received, ...time() }; // it may have waited for its turn
      const working = work(ctx, delivery, byEvent, turn.alone);
      if (remainingMs !== undefined) return working;
      return withDeadline(clock, delivery.endsBy - clock.now(), working, () => {
        telemetry.log.error('An effect ran longer than its handler may; this process ends', {
          error: outOfTime(),
        });
        telemetry.flush();
        stopProcess();
        return working;
      });
    };
    return turn.alone ? turns.alone(run) : turns.beside(run);
  };

  return {
    consumer: config.consumer,
    process: async (message, handler, { remainingMs, keep } = {}) => {
      open += 1;
      const endsBy = remainingMs === undefined ? Number.POSITIVE_INFINITY : clock.now() + remainingMs;
      try {
        const answer = answerOf(await processed(message, handler, remainingMs), redact);
        return answer.kind === 'rejected' && keep !== undefined
          ? await kept(ctx, answer, keep, endsBy)
          : answer;
      } finally {
        open -= 1;
        if (open === 0) {
          telemetry.flush();
          await flushSpans(clock, clock.now() + (remainingMs ?? handlerTimeoutMs));
        }
      }
    },
    handles: (handler, from) => {
      const { definitions } = preparedOnce(handler);
      if (from !== undefined) entry?.begin(from, definitions);
      return definitions.map(({ source, type }) => ({ source, type }));
    },
  };
}

/** Keeps a rejected message before the answer. If that fails, the answer is a retry. */
async function kept(
  { clock, telemetry }: ConsumerContext,
  answer: Extract<MessageAnswer, { kind: 'rejected' }>,
  keep: (reason: AnswerReason) => Promise<unknown>,
  endsBy: number,
): Promise<MessageAnswer> {
  try {
    const longestMs = Math.min(KEEP_MAX_MS, endsBy - ANSWER_MS - clock.now());
    await withDeadline(clock, longestMs, keep(answer.reason), () => {
      throw new MailroomError('OUT_OF_TIME', `The dead letter was not kept within ${longestMs} ms.`);
    });
    return answer;
  } catch (error) {
    telemetry.log.error('A dead letter could not be kept; it is tried again', { error: error as Error });
    return { ...answer, kind: 'retry', afterMs: KEEP_AGAIN_MS };
  }
}

/** The handlers of calls of `process`, prepared once for each list or handler. */
function handlersOnce({ config, around }: ConsumerContext) {
  const known = new WeakMap<object, ReturnType<typeof prepared>>();
  const prepared = (handler: Handler | readonly Handler[]) => {
    const list = [handler].flat();
    const byEvent = handlersByEvent(list, config, { around });
    const definitions = list.map(({ definition }) => definition);
    return { definitions, byEvent, external: definitions.filter(isExternal) };
  };
  return (handler: Handler | readonly Handler[]) => {
    const found = known.get(handler) ?? prepared(handler);
    known.set(handler, found);
    return found;
  };
}

/** A source delivers again at once after a crash, so a message waits for its lease, not for the end of the handler's time, and for its next attempt. */
async function waitOrTurn(ctx: ConsumerContext, delivery: Delivery): Promise<Turn | MessageOutcome> {
  try {
    const turn = await turnOf(ctx, delivery);
    if (turn.heldUntil !== undefined) return reportLeased(receivedOf(ctx, delivery), turn.heldUntil);
    const waitMs = (turn.dueAt ?? 0) - ctx.clock.now();
    return waitMs > 0 ? again(waitMs, tooEarly()) : turn;
  } catch (error) {
    return reportOutage(receivedOf(ctx, delivery), error);
  }
}

function tooEarly(): MailroomError {
  return new MailroomError(
    'PUT_BACK',
    'The message was delivered before its next attempt is due; no attempt is counted.',
  );
}
