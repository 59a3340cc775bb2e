import { EventEmitter } from 'node:events';
import type {
  JetStreamConsumer,
  JetStreamMessage,
} from '../../../../lambdas/runtime/sources/jet-stream-consumer.ts';
import type { RabbitConsumerChannel } from '../../../../lambdas/runtime/sources/rabbit-consumer.ts';
import type { RabbitMessage } from '../../../../lambdas/runtime/sources/rabbit-retries.ts';

/** A list that is read while it grows. */
function readable<T>() {
  const items: T[] = [];
  let closed = false;
  let broken: { readonly error: unknown } | undefined;
  let wake: () => void = () => {};
  const iterate = async function* () {
    for (let at = 0; ; ) {
      if (broken !== undefined) throw broken.error;
      const item = items[at];
      if (item !== undefined) {
        at += 1;
        yield item;
      } else if (closed) return;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  };
  return {
    push: (item: T) => {
      items.push(item);
      wake();
    },
    close: async () => {
      closed = true;
      wake();
    },
    fail: (error: unknown) => {
      broken = { error };
      wake();
    },
    [Symbol.asyncIterator]: iterate,
  };
}

/** A JetStream consumer whose stream is a list, and what it was told. */
export function jetStreamDouble(
  config: Partial<Awaited<ReturnType<JetStreamConsumer<never>['info']>>['config']> = {},
) {
  const told: string[] = [];
  const consumed: unknown[] = [];
  const messages = readable<JetStreamMessage>();
  const consumer: JetStreamConsumer<JetStreamMessage> = {
    info: async () => ({ name: 'payments', config: { ack_policy: 'explicit', ack_wait: 30e9, ...config } }),
    consume: async (options) => {
      consumed.push(options);
      return messages;
    },
  };
  return {
    consumer,
    messages,
    told,
    /** The options of its reading. */
    consumed,
    send: (body: string, seq = 1, deliveryCount = 1, headers?: Record<string, string>) =>
      messages.push({
        data: Buffer.from(body),
        headers: headers && {
          keys: () => Object.keys(headers),
          last: (name) => headers[name] ?? '',
          set: (name, value) => {
            headers[name] = value;
          },
          delete: (name) => void delete headers[name],
        },
        seq,
        info: { stream: 'ORDERS', deliveryCount, timestampNanos: 1e15 },
        ack: () => told.push(`ack ${seq}`),
        nak: (ms) => told.push(`nak ${seq} ${ms}`),
        term: (...reasons: unknown[]) => told.push(['term', seq, ...reasons].join(' ')),
        working: () => told.push(`working ${seq}`),
      }),
  };
}

/** A connection of RabbitMQ with its channel, and what it was told. @param stores - the answer to a copy for a queue @default it is stored @param changed - methods of the channel */
export function rabbitDouble(
  stores: () => 'stored' | 'returned' | 'refused' | 'blocked' = () => 'stored',
  changed: Partial<Pick<RabbitConsumerChannel<RabbitMessage>, 'cancel'>> = {},
) {
  const told: string[] = [];
  const copies: { readonly queue: string; readonly content: Buffer; readonly options: object }[] = [];
  const [ofConnection, ofChannel] = [new EventEmitter(), new EventEmitter()];
  let deliver: (message: RabbitMessage | null) => void = () => {};
  const nameOf = ({ properties }: RabbitMessage) => properties.messageId ?? 'unnamed';
  const channel: RabbitConsumerChannel<RabbitMessage> = {
    consume: async (queue, onMessage) => {
      told.push(`consume ${queue}`);
      deliver = onMessage;
      return { consumerTag: 'tag' };
    },
    ack: (message) => void told.push(`ack ${nameOf(message)}`),
    nack: (message, allUpTo, requeue) => void told.push(`nack ${nameOf(message)} ${allUpTo} ${requeue}`),
    cancel: async (tag) => told.push(`cancel ${tag}`),
    prefetch: async (count) => told.push(`prefetch ${count}`),
    assertQueue: async (queue) => told.push(`assert ${queue}`),
    sendToQueue: (queue, content, options, confirmed) => {
      copies.push({ queue, content, options });
      const answer = stores();
      if (answer === 'returned') ofChannel.emit('return', { properties: options });
      told.push(`copy ${queue}`);
      if (answer !== 'blocked')
        queueMicrotask(() => confirmed(answer === 'refused' ? new Error('nacked') : null));
      return true;
    },
    on: (event: string, listener: (given: never) => void) => ofChannel.on(event, listener as () => void),
    ...changed,
  };
  return {
    connection: {
      createConfirmChannel: async () => channel,
      on: (event: string, listener: (error: Error) => void) => ofConnection.on(event, listener),
    },
    copies,
    told,
    ofConnection,
    ofChannel,
    send: (
      body: string,
      messageId = 'm',
      properties: RabbitMessage['properties'] = {},
      redelivered = false,
    ) =>
      deliver({
        content: Buffer.from(body),
        fields: { redelivered },
        properties: { messageId, ...properties },
      }),
    cancelled: () => deliver(null),
  };
}
