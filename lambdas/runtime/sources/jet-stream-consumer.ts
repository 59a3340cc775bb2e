import { type Clock, OVER, systemClock } from '../base/clock.ts';
import { MailroomError } from '../base/errors.ts';
import { requireGiven } from '../base/given-names.ts';
import { attempted } from '../observe/telemetry-wrappers.ts';
import { type Consuming, createLoop, type KeepDeadLetter, keeping, sourceClosed } from './consuming.ts';
import type { InboxProcessor } from './inbox-processor.ts';
import type { AnswerReason, MessageAnswer } from './message-answer.ts';

/** The part of a message of `@nats-io/jetstream` that {@link consumeJetStream} uses. */
export interface JetStreamMessage {
  readonly data: Uint8Array;
  readonly headers?:
    | {
        keys(): string[];
        last(name: string): string;
        set(name: string, value: string): void;
        delete(name: string): void;
      }
    | undefined;
  readonly seq: number;
  readonly info: { readonly stream: string; readonly deliveryCount: number; readonly timestampNanos: number };
  ack(): void;
  nak(millis?: number): void;
  term(): void;
  working(): void;
}

/** The part of a pull consumer of `@nats-io/jetstream` that {@link consumeJetStream} uses. */
export interface JetStreamConsumer<M extends JetStreamMessage> {
  info(cached?: boolean): Promise<{
    readonly name: string;
    readonly config: {
      readonly ack_policy: string;
      readonly ack_wait?: number | undefined;
      readonly max_deliver?: number | undefined;
    };
  }>;
  consume(options: {
    readonly max_messages: number;
    readonly expires: number;
    readonly abort_on_missing_resource: boolean;
  }): Promise<AsyncIterable<M> & { close(): Promise<unknown> }>;
}

/** JetStream's default `ack_wait`, milliseconds. */
const ACK_WAIT_MS = 30_000;

/** The header by which JetStream drops duplicates. */
const MESSAGE_ID = 'Nats-Msg-Id';

/** The most messages that run at a time, unless the app says otherwise. */
const CONCURRENCY = 10;

/**
 * The time for which the server keeps a request for messages, milliseconds. Twice in it, the server says that it is there; if it is silent for as
 * long, the client looks whether the consumer still exists.
 */
const EXPIRES_MS = 5_000;

/**
 * Consumes from a pull consumer of JetStream. A processed message or a duplicate is acknowledged (ACK), a retry is delivered again after its
 * delay (NAK), and a rejected message is kept as a dead letter, then terminated (TERM). While a message is worked on, its ack wait is extended.
 *
 * At most `concurrency` messages run at a time. A retry that waits does not count among them, but in `max_ack_pending` of the JetStream consumer:
 * keep that at its default of 1,000, or far above `concurrency`, or ten failing messages hold back the healthy ones.
 *
 * @param options.consumer - an existing pull consumer with explicit acknowledgements and unlimited deliveries (`max_deliver: -1`)
 * @param options.handler - the handler, or one for each event
 * @param options.deadLetter - keeps a rejected message. Its id names the consumer, the stream and the message, so it can be the `msgID`. Its
 * headers have no instructions to the server (`Nats-…`), so they can be published again
 * @param options.concurrency - the most messages that run at a time, from 1 @default 10
 * @param options.clock - @default the machine's clock
 * @returns the loop. It ends with `SOURCE_CLOSED` if the JetStream consumer or its stream is deleted, or lost in a restart
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
export async function consumeJetStream<M extends JetStreamMessage, H>(options: {
  readonly consumer: JetStreamConsumer<M>;
  readonly inbox: InboxProcessor<H>;
  readonly handler: NoInfer<H> | readonly NoInfer<H>[];
  readonly deadLetter: KeepDeadLetter<M>;
  readonly concurrency?: number | undefined;
  readonly clock?: Clock | undefined;
}): Promise<Consuming> {
  requireGiven('consumeJetStream', options, 'consumer', 'inbox', 'handler', 'deadLetter');
  const { consumer, inbox, handler, deadLetter, concurrency = CONCURRENCY, clock = systemClock } = options;
  if (!(Number.isInteger(concurrency) && concurrency >= 1)) {
    const message = `consumeJetStream: concurrency is ${concurrency}; it must be a whole number from 1. Set it to the messages that one process can run.`;
    throw new MailroomError('BAD_ARGUMENT', message);
  }
  inbox.handles(handler);
  const { name, ackWaitMs } = await checked(consumer);
  inbox.handles(handler, `JetStream consumer ${name}`);
  const messages = await consumer.consume({
    max_messages: concurrency,
    expires: EXPIRES_MS,
    abort_on_missing_resource: true,
  });
  let isStopping = false;
  let hasRoom = () => {};
  const loop = createLoop(clock, () => {
    isStopping = true;
    hasRoom(); // for the messages that wait, which are given back
    messages.close().catch(() => {}); // it ends behind the messages that were received before
  });
  const handle = async (message: M): Promise<void> => {
    const { data: body, headers, seq, info } = message;
    const named = (headers?.keys() ?? []).map((name) => [name, headers?.last(name)] as const);
    const delivered = {
      id: `${info.stream}/${seq}`,
      body,
      headers: Object.fromEntries(named),
      receives: info.deliveryCount,
      sentAt: info.timestampNanos / 1e6,
    };
    const keep = (reason: AnswerReason) => {
      if (headers !== undefined) withoutInstructions(headers);
      return keeping(inbox, deadLetter, delivered.id, message)(reason);
    };
    tell(message, await inbox.process(delivered, handler, { keep }));
  };
  const running = new Set<M>();
  const run = async (message: M) => {
    running.add(message);
    await handle(message).finally(() => {
      running.delete(message);
      hasRoom();
    });
  };
  const over = new AbortController();
  const end = () => over.abort(OVER);
  loop.ended.then(end, end);
  const extendAckWaits = async () => {
    for (;;) {
      await clock.sleep(ackWaitMs / 3, over.signal);
      if (over.signal.aborted) return;
      for (const message of running) attempted(() => message.working()); // the connection may be gone
    }
  };
  void extendAckWaits();
  const receive = async () => {
    for await (const message of messages) {
      if (isStopping) {
        message.nak(); // for another process
        continue;
      }
      loop.run(() => run(message));
      // While nothing is taken from them, the client requests no more messages.
      if (running.size >= concurrency)
        await new Promise<void>((resolve) => {
          hasRoom = resolve;
        });
    }
  };
  const failed = (error?: unknown) =>
    loop.fail(
      sourceClosed(
        'JetStream no longer has the consumer or its stream, or the connection was closed.',
        error,
      ),
    );
  loop.run(() => receive().then(failed, failed));
  return { ended: loop.ended.then(), stop: loop.stop }; // a promise without a listener
}

/**
 * Removes what a publisher told the server: the message's own id, the stream or sequence that it expected, a rollup, a time to live. With them, a
 * dead letter would be refused, dropped as a duplicate, or replace others. An id that identifies its event stays, as the header `id`: published
 * again, it is the same event.
 */
function withoutInstructions(headers: NonNullable<JetStreamMessage['headers']>): void {
  const names = headers.keys();
  const id = headers.last(MESSAGE_ID);
  if (id !== '' && !names.some((name) => /^(ce[-_]|cloudEvents[:_])?id$/.test(name))) headers.set('id', id);
  for (const name of names) if (/^nats-/i.test(name)) headers.delete(name);
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

async function checked<M extends JetStreamMessage>(
  consumer: JetStreamConsumer<M>,
): Promise<{ readonly name: string; readonly ackWaitMs: number }> {
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
  return { name, ackWaitMs: waitNs / 1e6 };
}
