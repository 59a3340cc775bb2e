import { errorCode, errorMessage } from '../base/errors.ts';
import { forwardAddress } from '../base/forward-address.ts';
import {
  type ForwardEntry,
  type ForwardResult,
  type ForwardTarget,
  isPermanent,
  type RefusalCodes,
  refused,
  refusedBy,
} from './forward-target.ts';
import { heldConnection } from './held-connection.ts';
import { addressOf, kafkaTopic } from './message-grammar.ts';

/** The part of the client `Kafka` of `kafkajs` that {@link kafkaTarget} uses. */
export interface KafkaClient {
  producer(options: {
    idempotent: boolean;
    maxInFlightRequests: number;
    allowAutoTopicCreation: boolean;
    retry: { retries: number };
  }): KafkaProducer;
}

/** The part of a producer of `kafkajs` that {@link kafkaTarget} uses. */
export interface KafkaProducer {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  send(record: {
    topic: string;
    acks: number;
    messages: { key: string; value: string; headers: Record<string, string> }[];
  }): Promise<{ partition: number; baseOffset?: string; offset?: string }[]>;
}

/** Error types of Kafka's protocol. Any other is `unavailable`. */
const REFUSALS: RefusalCodes = [
  ['missing', /^(UNKNOWN_TOPIC_OR_PARTITION|INVALID_TOPIC_EXCEPTION)$/],
  ['denied', /AUTHORIZATION_FAILED$|AUTHENTICATION|SASL/i],
  ['too-large', /^(MESSAGE_TOO_LARGE|RECORD_LIST_TOO_LARGE)$/],
  ['invalid', /^INVALID_RECORD$/],
];

/**
 * Forwards to a Kafka topic, e.g. of MSK. The key is the aggregate id. The producer is idempotent and waits for all in-sync replicas; it connects
 * on first use, and again after a failure. A topic is not created. A record has the time of its sending: Kafka deletes it one retention
 * after that, however old the event is.
 *
 * @param target.client - makes the client: `(brokers) => new Kafka({ brokers })`
 * @param target.topic - the name of the topic
 * @param target.brokers - addresses, separated by commas @default the environment, as `forwardsTo` sets it
 * @throws `BAD_ARGUMENT` if `topic` is not the name of a topic
 */
export function kafkaTarget(target: {
  readonly client: (brokers: string[]) => KafkaClient;
  readonly topic: string;
  readonly brokers?: string | undefined;
}): ForwardTarget {
  const { topic } = target;
  addressOf('kafkaTarget', 'topic', topic, kafkaTopic);
  const connection = heldConnection(
    async () => {
      const client = target.client(forwardAddress(target.brokers, 'brokers').split(','));
      const producer = client.producer({
        idempotent: true,
        maxInFlightRequests: 1,
        allowAutoTopicCreation: false,
        retry: { retries: 2 }, // the consumer's own schedule goes on from there
      });
      await producer.connect();
      return producer;
    },
    (producer) => producer.disconnect(),
  );

  const sendAll = async (entries: readonly ForwardEntry[]): Promise<readonly ForwardResult[]> => {
    const results: ForwardResult[] = [];
    try {
      const producer = await connection.get();
      for (const entry of entries) {
        const result = await sendOne(producer, topic, entry);
        results.push(result);
        if (result.ok || isPermanent(result)) continue;
        connection.drop(producer); // its numbering of the partition's messages may be wrong permanently
        break;
      }
    } catch (error) {
      results.push(kafkaRefusal(error));
    }
    const last = results.at(-1) ?? refused('unavailable', 'NO_ANSWER', 'nothing was sent');
    return entries.map((_, i) => results[i] ?? last);
  };

  /**
   * Ends when the calls before it have ended. Two messages must not be under way in one producer: if the answer to the first is lost,
   * `kafkajs` gives its number to the second, which Kafka then takes for a duplicate, drops, and confirms.
   */
  let turn: Promise<unknown> = Promise.resolve();
  return {
    name: () => `topic ${topic}`,
    limits: { entries: 100, bytes: Number.POSITIVE_INFINITY },
    cloudEventsPrefix: 'ce_',
    send: (entries) => {
      const results = turn.then(() => sendAll(entries));
      turn = results;
      return results;
    },
    reset: () => {
      turn = Promise.resolve(); // the next call has another producer
      connection.drop();
    },
  };
}

/** Sends an entry alone, because the answer to a batch has only the first offset of each partition. */
async function sendOne(
  producer: KafkaProducer,
  topic: string,
  { event, body, headers }: ForwardEntry,
): Promise<ForwardResult> {
  try {
    const messages = [{ key: event.aggregateId, value: body, headers: { ...headers } }];
    const [stored] = await producer.send({ topic, acks: -1, messages });
    const { partition = '?', baseOffset, offset = baseOffset ?? '?' } = stored ?? {};
    return { ok: true, place: { partition, offset } };
  } catch (error) {
    return kafkaRefusal(error);
  }
}

/** The innermost error with a type of the protocol: `kafkajs` wraps it once its retries are exhausted. */
function kafkaRefusal(error: unknown) {
  let type = errorCode(error);
  for (let inner = error as Inner | undefined, depth = 0; inner && depth < 5; inner = inner.cause, depth += 1)
    type = inner.type ?? type;
  return refusedBy(REFUSALS, type, errorMessage(error));
}

interface Inner {
  readonly type?: string;
  readonly cause?: Inner;
}
