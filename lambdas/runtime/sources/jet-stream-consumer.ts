import { type Clock, systemClock } from '../base/clock.ts';
import { MailroomError } from '../base/errors.ts';
import type { Handler } from '../consume/handler.ts';
import {
  beating,
  type Consuming,
  createLoop,
  type KeepDeadLetter,
  type Loop,
  sourceClosed,
} from './consuming.ts';
import type { AnswerReason, InboxProcessor, MessageAnswer } from './inbox-processor.ts';

/** The part of a message of `@nats-io/jetstream` or `nats` that {@link consumeJetStream} uses. */
export interface JetStreamMessage {
  readonly data: Uint8Array;
  readonly headers?: { keys(): string[]; get(name: string): string } | undefined;
  readonly seq: number;
  readonly info: { readonly stream: string; readonly deliveryCount: number; readonly timestampNanos: number };
  ack(): void;
  nak(millis?: number): void;
  term(): void;
  working(): void;
}

/** The part of a pull consumer of `@nats-io/jetstream` or `nats` that {@link consumeJetStream} uses. */
export interface JetStreamConsumer<M extends JetStreamMessage> {
  info(cached?: boolean): Promise<{
    readonly name: string;
    readonly config: {
      readonly ack_policy: string;
      readonly ack_wait?: number | undefined;
      readonly max_deliver?: number | undefined;
    };
  }>;
  consume(): Promise<AsyncIterable<M> & { close(): Promise<unknown> }>;
}

/** JetStream's default `ack_wait`, milliseconds. */
const ACK_WAIT_MS = 30_000;

/**
 * Consumes from a pull consumer of JetStream. A processed message or a duplicate is acknowledged (ACK), a retry is delivered again after its
 * delay (NAK), and a rejected message is kept as a dead letter, then terminated (TERM). While a message is worked on, its ack wait is extended.
 *
 * Messages run concurrently, at most `max_ack_pending` of the JetStream consumer: set it to what the process can run.
 *
 * @param options.consumer - an existing pull consumer with explicit acknowledgements and unlimited deliveries (`max_deliver: -1`)
 * @param options.handler - the handler, or one for each event
 * @param options.deadLetter - keeps a rejected message
 * @param options.clock - @default the machine's clock
 * @throws `BAD_ARGUMENT` if the JetStream consumer acknowledges differently or limits its deliveries; `BAD_CONSUMER` if a handler cannot be used
 *
 * @example
 * ```ts
 * const consuming = await consumeJetStream({
 *   consumer: await js.consumers.get('ORDERS', 'payments'),
 *   inbox,
 *   handler: leased(OrderPlaced, charge),
 *   deadLetter: ({ id, message }) => js.publish('dead.payments', message.data, { msgID: id, headers: message.headers }),
 * });
 * process.once('SIGTERM', () => void consuming.stop());
 * await consuming.ended;
 * ```
 */
export async function consumeJetStream<M extends JetStreamMessage>(options: {
  readonly consumer: JetStreamConsumer<M>;
  readonly inbox: InboxProcessor;
  readonly handler: Handler | readonly Handler[];
  readonly deadLetter: KeepDeadLetter<M>;
  readonly clock?: Clock | undefined;
}): Promise<Consuming> {
  const { consumer, inbox, handler, deadLetter, clock = systemClock } = options;
  inbox.handles(handler);
  const ackWaitMs = await checkedAckWait(consumer);
  const messages = await consumer.consume();
  const loop = createLoop(() => messages.close());
  const handle = async (message: M): Promise<void> => {
    const { data: body, headers, seq, info } = message;
    const named = (headers?.keys() ?? []).map((name) => [name, headers?.get(name)] as const);
    const delivered = {
      id: `${info.stream}/${seq}`,
      body,
      headers: Object.fromEntries(named),
      receives: info.deliveryCount,
      sentAt: info.timestampNanos / 1e6,
    };
    await beating(
      clock,
      ackWaitMs / 3,
      () => message.working(),
      async () => {
        const keep = (reason: AnswerReason) => deadLetter({ id: delivered.id, reason, message });
        tell(message, await inbox.process(delivered, handler, { keep }));
      },
    );
  };
  void receive(messages, loop, handle);
  return loop;
}

async function receive<M>(
  messages: AsyncIterable<M>,
  loop: Loop,
  handle: (message: M) => Promise<void>,
): Promise<void> {
  try {
    for await (const message of messages) {
      if (loop.signal.aborted) break; // not acknowledged: delivered again after its ack wait
      loop.run(() => handle(message));
    }
    loop.fail(sourceClosed('JetStream has ended the consumer, or its connection was closed.'));
  } catch (error) {
    loop.fail(sourceClosed('Receiving from JetStream has failed.', error));
  }
}

function tell(message: JetStreamMessage, answer: MessageAnswer): void {
  switch (answer.kind) {
    case 'done':
    case 'duplicate':
      message.ack();
      return;
    case 'retry':
      message.nak(answer.afterMs);
      return;
    case 'rejected':
      message.term(); // without a reason, which servers before 2.10 do not understand and ignore
  }
}

async function checkedAckWait<M extends JetStreamMessage>(consumer: JetStreamConsumer<M>): Promise<number> {
  const { name, config } = await consumer.info();
  const { ack_policy: policy, ack_wait: waitNs = ACK_WAIT_MS * 1e6, max_deliver: deliveries = -1 } = config;
  const bad = (problem: string) =>
    new MailroomError('BAD_ARGUMENT', `consumeJetStream: consumer ${name} ${problem}`);
  if (policy !== 'explicit')
    throw bad(
      `has ack_policy "${policy}"; it must be "explicit". Create another consumer: JetStream cannot change it.`,
    );
  if (deliveries > 0)
    throw bad(
      `has max_deliver ${deliveries}: after that many deliveries, JetStream drops a message that was not processed. Set it to -1; the inbox counts attempts.`,
    );
  return waitNs / 1e6;
}
