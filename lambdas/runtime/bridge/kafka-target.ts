import { bridgeAddress } from '../base/bridge-address.ts';
import { errorMessage } from '../base/errors.ts';
import { requireGiven } from '../base/given-names.ts';
import { kafkaAnswerType, kafkaErrorType } from '../base/kafka-error-type.ts';
import {
  type BridgedEvent,
  type BridgeResult,
  type BridgeTarget,
  isPermanent,
  type RefusalCodes,
  refused,
  refusedBy,
} from './bridge-target.ts';
import { heldConnection } from './held-connection.ts';
import { grouped, type KafkaPartitions, type KafkaProduced, kafkaPartitions } from './kafka-partitions.ts';
import { addressOf, kafkaTopic } from './message-grammar.ts';

/** The part of the client `Kafka` of `kafkajs` that {@link kafkaTarget} uses. */
export interface KafkaClient {
  producer(options: {
    idempotent: boolean;
    maxInFlightRequests: number;
    allowAutoTopicCreation: boolean;
    retry: { retries: number };
    createPartitioner: () => (of: {
      partitionMetadata: readonly { readonly leader: number }[];
      message: object;
    }) => number;
  }): KafkaProducer;
}

/** The part of a producer of `kafkajs` that {@link kafkaTarget} uses. */
export interface KafkaProducer {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  /** @returns the first offset of each partition */
  send(record: {
    topic: string;
    acks: number;
    messages: KafkaProduced[];
  }): Promise<{ partition: number; baseOffset?: string; offset?: string }[]>;
}

/** Error types of Kafka's protocol, and names of errors of `kafkajs`. Any other is `unavailable`. */
const REFUSALS: RefusalCodes = [
  ['missing', /^(UNKNOWN_TOPIC_OR_PARTITION|INVALID_TOPIC_EXCEPTION)$/],
  ['denied', /AUTHORIZATION_FAILED$|AUTHENTICATION|SASL/i],
  ['too-large', /^(MESSAGE_TOO_LARGE|RECORD_LIST_TOO_LARGE)$/],
  ['invalid', /^INVALID_RECORD$/],
];

/**
 * The bytes of a call. A partition's messages of a call are one batch, and Kafka's default for the largest batch is 1 MiB (`max.message.bytes`).
 * An event that is larger is sent alone.
 */
const CALL_MAX_BYTES = 900_000;

/**
 * Forwards to a Kafka topic, e.g. of MSK. The key is the aggregate id. The producer is idempotent and waits for all in-sync replicas; it connects
 * on first use, and again after a failure. A topic is not created. A record has the time of its sending: Kafka deletes it one retention
 * after that, however old the event is.
 *
 * @param target.client - makes the client: `(brokers) => new Kafka({ brokers })`. It may be asynchronous, e.g. to read a secret
 * @param target.topic - the name of the topic
 * @param target.brokers - addresses, separated by commas @default the environment, as `forwardsTo` sets it
 * @throws `BAD_ARGUMENT` if `topic` is not the name of a topic
 */
export function kafkaTarget(target: {
  readonly client: (brokers: string[]) => KafkaClient | Promise<KafkaClient>;
  readonly topic: string;
  readonly brokers?: string | undefined;
}): BridgeTarget {
  requireGiven('kafkaTarget', target, 'client', 'topic');
  const { topic } = target;
  addressOf('kafkaTarget', 'topic', topic, kafkaTopic);
  const connection = heldConnection(
    async () => {
      const client = await target.client(bridgeAddress(target.brokers, 'brokers').split(','));
      const partitions = kafkaPartitions();
      const producer = client.producer({
        idempotent: true,
        maxInFlightRequests: 1,
        allowAutoTopicCreation: false,
        retry: { retries: 2 }, // the consumer's own schedule goes on from there
        createPartitioner: partitions.createPartitioner,
      });
      await producer.connect();
      return { producer, partitions };
    },
    ({ producer }) => producer.disconnect(),
  );

  const sendAll = async (
    entries: readonly BridgedEvent[],
    known: (index: number, result: BridgeResult) => void,
  ): Promise<readonly BridgeResult[]> => {
    const results = new Map<KafkaProduced, BridgeResult>();
    const messages = entries.map(messageOf);
    const indexes = new Map(messages.map((message, index) => [message, index]));
    let failure: BridgeResult = refused('unavailable', 'NO_ANSWER', 'it did not answer for it');
    try {
      const held = await connection.get();
      const settle = (message: KafkaProduced, result: BridgeResult) => {
        results.set(message, result);
        known(indexes.get(message) ?? 0, result);
      };
      for (let open = messages; open.length > 0; open = messages.filter((one) => !results.has(one))) {
        const groups = held.partitions.byLeader(open);
        await Promise.all(groups.map((group) => sendGroup(held, topic, group, settle)));
        const passing = [...results.values()].find((result) => !result.ok && !isPermanent(result));
        if (passing === undefined) continue;
        failure = passing;
        connection.drop(held); // its numbering of a partition's messages may be wrong permanently
        break;
      }
    } catch (error) {
      failure = kafkaRefusal(error);
    }
    return messages.map((message) => results.get(message) ?? failure);
  };

  /**
   * Ends when the calls before it have ended. Two batches of a partition must not be under way in one producer: if the answer to the first is lost,
   * `kafkajs` gives its numbers to the second, which Kafka then takes for a duplicate, drops, and confirms.
   */
  let turn: Promise<unknown> = Promise.resolve();
  return {
    name: () => `topic ${topic}`,
    limits: { entries: 100, bytes: CALL_MAX_BYTES, entryBytes: Number.POSITIVE_INFINITY },
    cloudEventsPrefix: 'ce_',
    send: (entries, known = () => {}) => {
      const results = turn.then(() => sendAll(entries, known));
      turn = results;
      return results;
    },
    reset: () => {
      turn = Promise.resolve(); // the next call has another producer
      connection.drop();
    },
  };
}

function messageOf({ event, body, headers }: BridgedEvent): KafkaProduced {
  return { key: event.aggregateId, value: body, headers: { ...headers } };
}

/**
 * Sends messages in one request to their leader. `kafkajs` throws if one partition of several refuses its messages, although the others have stored
 * theirs: then each partition is sent again, alone and with the same messages. They have the same numbers, so Kafka confirms what it has stored and
 * does not store it twice.
 */
async function sendGroup(
  held: { readonly producer: KafkaProducer; readonly partitions: KafkaPartitions },
  topic: string,
  messages: KafkaProduced[],
  settle: (message: KafkaProduced, result: BridgeResult) => void,
): Promise<void> {
  const { producer, partitions } = held;
  try {
    const stored = await producer.send({ topic, acks: -1, messages });
    for (const group of grouped(messages, partitions.of)) {
      const [first] = group;
      const partition = (first && partitions.of(first)) ?? stored[0]?.partition;
      // Without the partition in the answer: kafkajs does not send messages whose leader has changed to one that has answered before.
      const answer = stored.find((one) => one.partition === partition);
      for (const [nth, message] of group.entries()) settle(message, placeOf(answer, nth));
    }
  } catch (error) {
    const groups = grouped(messages, partitions.of);
    if (groups.length > 1 && kafkaAnswerType(error) !== undefined)
      await Promise.all(groups.map((group) => sendGroup(held, topic, group, settle)));
    else for (const message of messages) settle(message, kafkaRefusal(error));
  }
}

/** The place of the nth message of its partition: the answer has the offset of the first. */
function placeOf(
  answer: { readonly partition: number; readonly baseOffset?: string; readonly offset?: string } | undefined,
  nth: number,
): BridgeResult {
  if (answer === undefined)
    return refused('unavailable', 'NO_ANSWER', 'the answer does not have its partition');
  const { partition, baseOffset, offset: first = baseOffset } = answer;
  const offset = first === undefined ? '?' : String(BigInt(first) + BigInt(nth));
  return { ok: true, place: { partition, offset } };
}

function kafkaRefusal(error: unknown) {
  const type = kafkaErrorType(error);
  return refusedBy(REFUSALS, type, errorMessage(error));
}
