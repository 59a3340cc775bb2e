import { createHash } from 'node:crypto';
import type { Context, SQSBatchItemFailure, SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import { type Clock, systemClock } from '../lambdas/runtime/base/clock.ts';
import { MailroomError } from '../lambdas/runtime/base/errors.ts';
import { jsonFault } from '../lambdas/runtime/base/json-fault.ts';
import { type Queue, VISIBILITY_MAX_S } from '../lambdas/runtime/sources/sqs/queue.ts';
import { lambdaContext } from './lambda-context.ts';
import { sequentialId } from './sequential-id.ts';
import { ValidationException } from './validation-exception.ts';

/** The maximum number of messages per receive, and per Lambda batch of a standard queue without a batching window. */
const RECEIVE_MAX = 10;

/** The maximum message size: 1 MiB (SQS quotas). */
const MESSAGE_BYTES_MAX = 1024 * 1024;

/** Options of {@link memoryQueue}. */
export interface MemoryQueueOptions {
  /** @default the system clock */
  readonly clock?: Clock | undefined;
  /** The queue's name, the last part of its ARN. @default 'memory' */
  readonly name?: string | undefined;
  /** The time that a received message stays hidden, in milliseconds. @default 30,000 */
  readonly visibilityTimeoutMs?: number | undefined;
  /** The number of receives after which a message goes to the dead-letter queue. @default never */
  readonly maxReceiveCount?: number | undefined;
  /**
   * Returns a random number from 0 to just below 1: a receive then takes any of the visible messages, as SQS does.
   *
   * @default the oldest first
   */
  readonly draw?: (() => number) | undefined;
}

/** The current state of one message. */
export interface MemoryMessage {
  /** A redrive assigns a new one. */
  readonly messageId: string;
  /** The message body. */
  readonly body: string;
  /** The number of receives so far. */
  readonly receiveCount: number;
  /** When it was sent, in epoch milliseconds. */
  readonly sentAt: number;
  /** When it becomes visible, in epoch milliseconds. */
  readonly visibleAt: number;
}

/** The result of one {@link MemoryQueue.deliver}. */
export interface QueueDelivery {
  /** The number of messages passed to the handler. */
  readonly received: number;
  /** The ids of the messages that stayed in the queue. */
  readonly failed: readonly string[];
  /**
   * The errors of a consumer's failed messages, by message id: what the handler threw, why the message was rejected, or why it must
   * wait. Absent if there are none.
   */
  readonly errors?: Readonly<Record<string, unknown>>;
  /** The error that the handler threw: all messages of the batch failed. */
  readonly error?: unknown;
}

/** A consumer's Lambda function. */
export type QueueHandler = (event: SQSEvent, context: Context) => Promise<SQSBatchResponse | undefined>;

/** An in-memory standard queue with a dead-letter queue. */
export interface MemoryQueue extends Queue {
  /** Sends a message. @param body - anything but a string is sent as JSON. @returns the message id */
  send(body: unknown): string;
  /** Receives visible messages: hides each one and counts the receive, or moves it to the dead-letter queue. @param max - @default 10 */
  receive(max?: number): SQSRecord[];
  /** Deletes a message; does nothing unless the receipt is its latest. */
  delete(receiptHandle: string): void;
  /**
   * Delivers one batch as Lambda does: receives, calls the handler, and deletes the messages that did not fail. Failed messages
   * stay hidden for the rest of their visibility timeout. Without a visible message, the handler is not called.
   *
   * @param context - @default a context with 30 s left on the queue's clock
   */
  deliver(handler: QueueHandler, batchSize?: number, context?: Context): Promise<QueueDelivery>;
  /** The messages that are waiting or in flight. */
  messages(): MemoryMessage[];
  /** The messages in the dead-letter queue. */
  deadLetters(): MemoryMessage[];
  /** Redrives the dead letters, each as a new message with a new id and a receive count of 0. @returns their number */
  redrive(): number;
}

type Stored = { -readonly [K in keyof MemoryMessage]: MemoryMessage[K] } & {
  receiptHandle?: string;
  firstReceivedAt?: number;
  receivedAt?: number;
};

/**
 * Creates an in-memory SQS queue.
 *
 * @example
 * ```ts
 * const queue = memoryQueue({ clock, maxReceiveCount: 8 });
 * queue.send(message);
 * const { failed } = await queue.deliver(handler);
 * ```
 */
export function memoryQueue(options: MemoryQueueOptions = {}): MemoryQueue {
  const { clock = systemClock } = options;
  const state: QueueState = { ...options, clock, waiting: [], dead: [], messageNumber: 0, receiptNumber: 0 };
  return {
    send: (body) => send(state, typeof body === 'string' ? body : jsonOf(body)),
    receive: (max) => receive(state, max),
    delete: (receiptHandle) => remove(state, receiptHandle),
    changeVisibility: async (receiptHandle, seconds) => changeVisibility(state, receiptHandle, seconds),
    deliver: async (handler, batchSize = RECEIVE_MAX, context = lambdaContext({ clock })) => {
      const Records = receive(state, batchSize);
      if (Records.length === 0) return { received: 0, failed: [] };
      const { failed, ...rest } = await failures(handler, { Records }, context);
      for (const record of Records) if (!failed.has(record.messageId)) remove(state, record.receiptHandle);
      return { received: Records.length, failed: [...failed], ...rest };
    },
    messages: () => state.waiting.map(shown),
    deadLetters: () => state.dead.map(shown),
    redrive: () => {
      const moved = state.dead;
      state.dead = [];
      for (const { body } of moved) add(state, body);
      return moved.length;
    },
  };
}

/** A queue's options, and its messages. */
interface QueueState extends MemoryQueueOptions {
  readonly clock: Clock;
  waiting: readonly Stored[];
  dead: readonly Stored[];
  messageNumber: number;
  receiptNumber: number;
}

/** @throws `BAD_ARGUMENT` if JSON would change the body: a consumer would receive less than the test sends */
function jsonOf(body: unknown): string {
  const fault = jsonFault(body);
  if (fault === undefined) return JSON.stringify(body);
  const path = ['body', ...fault.path].join('.');
  throw new MailroomError(
    'BAD_ARGUMENT',
    `The body cannot be written as JSON: ${path} is ${fault.kind}. ${fault.remedy}`,
  );
}

function send(state: QueueState, text: string): string {
  const bytes = Buffer.byteLength(text);
  if (bytes > MESSAGE_BYTES_MAX) {
    throw new ValidationException(
      `The message has ${bytes} bytes; at most ${MESSAGE_BYTES_MAX} are allowed`,
      'InvalidParameterValue',
    );
  }
  return add(state, text);
}

function add(state: QueueState, body: string): string {
  state.messageNumber += 1;
  const messageId = sequentialId(1, state.messageNumber);
  const now = state.clock.now();
  state.waiting = [...state.waiting, { messageId, body, receiveCount: 0, sentAt: now, visibleAt: now }];
  return messageId;
}

function receive(state: QueueState, max = RECEIVE_MAX): SQSRecord[] {
  const { clock, draw, maxReceiveCount = Infinity } = state;
  const visible = state.waiting.filter(({ visibleAt }) => visibleAt <= clock.now());
  const spent = visible.filter(({ receiveCount }) => receiveCount >= maxReceiveCount);
  state.waiting = state.waiting.filter((message) => !spent.includes(message));
  state.dead = [...state.dead, ...spent];
  const left = visible.filter((message) => !spent.includes(message));
  const taken: Stored[] = [];
  while (taken.length < max && left.length > 0)
    taken.push(...left.splice(draw === undefined ? 0 : Math.floor(draw() * left.length), 1));
  return taken.map((message) => receiveOne(state, message));
}

function receiveOne(state: QueueState, message: Stored): SQSRecord {
  const { name = 'memory', visibilityTimeoutMs = 30_000 } = state;
  const now = state.clock.now();
  state.receiptNumber += 1;
  message.receiveCount += 1;
  message.receiptHandle = sequentialId(2, state.receiptNumber);
  message.receivedAt = now;
  message.firstReceivedAt ??= now;
  message.visibleAt = now + visibilityTimeoutMs;
  return {
    messageId: message.messageId,
    receiptHandle: message.receiptHandle,
    body: message.body,
    attributes: {
      ApproximateReceiveCount: String(message.receiveCount),
      ApproximateFirstReceiveTimestamp: String(message.firstReceivedAt),
      SentTimestamp: String(message.sentAt),
      SenderId: 'AIDAMEMORY',
    },
    messageAttributes: {},
    md5OfBody: createHash('md5').update(message.body).digest('hex'),
    eventSource: 'aws:sqs',
    eventSourceARN: `arn:aws:sqs:us-east-1:000000000000:${name}`,
    awsRegion: 'us-east-1',
  };
}

function remove(state: QueueState, receiptHandle: string): void {
  state.waiting = state.waiting.filter((message) => message.receiptHandle !== receiptHandle);
}

function changeVisibility(state: QueueState, receiptHandle: string, seconds: number): void {
  const message = state.waiting.find((candidate) => candidate.receiptHandle === receiptHandle);
  const now = state.clock.now();
  if (!Number.isInteger(seconds) || seconds < 0 || seconds > VISIBILITY_MAX_S) {
    throw new ValidationException(
      `Value ${seconds} for parameter VisibilityTimeout is invalid. Must be a whole number from 0 to ${VISIBILITY_MAX_S}`,
      'InvalidParameterValue',
    );
  }
  if (!message) throw new ValidationException('The receipt handle is not valid', 'ReceiptHandleIsInvalid');
  if (message.visibleAt <= now) {
    throw new ValidationException('The message is not in flight: it is visible', 'MessageNotInflight');
  }
  if (now + seconds * 1000 - (message.receivedAt ?? now) > VISIBILITY_MAX_S * 1000) {
    throw new ValidationException(
      `Total VisibilityTimeout for the message is beyond the limit [${VISIBILITY_MAX_S} seconds]`,
      'InvalidParameterValue',
    );
  }
  message.visibleAt = now + seconds * 1000;
}

/** One failure of a batch response. Those of Mailroom's consumer also carry the error, which is not enumerable. */
interface ItemFailure extends SQSBatchItemFailure {
  readonly error?: unknown;
}

/**
 * Interprets a batch response as Lambda does: if the handler throws, or returns an empty id or one that is not in the batch, all
 * messages have failed.
 */
async function failures(
  handler: QueueHandler,
  event: SQSEvent,
  context: Context,
): Promise<{ failed: Set<string>; errors?: Readonly<Record<string, unknown>>; error?: unknown }> {
  const all = new Set(event.Records.map(({ messageId }) => messageId));
  try {
    const response = await handler(structuredClone(event), context);
    const failures: readonly ItemFailure[] = response?.batchItemFailures ?? [];
    const failed = new Set(failures.map(({ itemIdentifier }) => itemIdentifier));
    const errors = failures.flatMap(({ itemIdentifier, error }) =>
      error === undefined ? [] : [[itemIdentifier, error]],
    );
    return {
      failed: [...failed].every((id) => all.has(id)) ? failed : all,
      ...(errors.length > 0 && { errors: Object.fromEntries(errors) }),
    };
  } catch (error) {
    return { failed: all, error };
  }
}

function shown({ messageId, body, receiveCount, sentAt, visibleAt }: Stored): MemoryMessage {
  return { messageId, body, receiveCount, sentAt, visibleAt };
}
