/** A message of `kafkajs`. */
export interface KafkaProduced {
  readonly key: string;
  readonly value: string;
  readonly headers: Record<string, string>;
}

/** The part of the metadata of a partition that a partitioner reads. */
interface Partition {
  readonly leader: number;
}

/** The partitions of a topic as its producer sees them. */
export interface KafkaPartitions {
  /** Makes the function with which `kafkajs` chooses the partition of a message. */
  readonly createPartitioner: () => (of: {
    partitionMetadata: readonly Partition[];
    message: object;
  }) => number;
  /** The partition of a message; undefined until the client has asked for one. */
  of(message: KafkaProduced): number | undefined;
  /** Messages by the leader of their partition; the first message alone until the leaders are known. No partition is in two groups. */
  byLeader(messages: readonly KafkaProduced[]): KafkaProduced[][];
}

/**
 * Places messages as the default partitioner of `kafkajs` and of Kafka's Java client, and remembers where.
 *
 * A message keeps its partition when `kafkajs` tries it again: if partitions were added meanwhile, another partition would get the message, too, and
 * the next message of its first one would get its number, which Kafka takes for a duplicate.
 */
export function kafkaPartitions(): KafkaPartitions {
  const placed = new WeakMap<object, number>();
  let partitions: readonly Partition[] = [];
  const place = (message: object): number => {
    const known = placed.get(message);
    if (known !== undefined) return known;
    const partition = partitionOf((message as KafkaProduced).key, partitions.length);
    placed.set(message, partition);
    return partition;
  };
  return {
    createPartitioner:
      () =>
      ({ partitionMetadata, message }) => {
        partitions = partitionMetadata;
        return place(message);
      },
    of: (message) => placed.get(message),
    byLeader: (messages) => {
      if (partitions.length === 0) return [messages.slice(0, 1)];
      return grouped(messages, (message) => partitions[place(message)]?.leader);
    },
  };
}

/** Groups messages by a property, in their order. */
export function grouped<T>(
  messages: readonly KafkaProduced[],
  of: (message: KafkaProduced) => T,
): KafkaProduced[][] {
  const groups = new Map<T, KafkaProduced[]>();
  for (const message of messages) {
    const name = of(message);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [message]);
    else group.push(message);
  }
  return [...groups.values()];
}

/** The partition of a key: that of `Partitioners.DefaultPartitioner` of `kafkajs`. */
export function partitionOf(key: string, partitions: number): number {
  return (murmur2(Buffer.from(key)) & 0x7fffffff) % partitions;
}

const SEED = 0x9747b28c;
const MULTIPLIER = 0x5bd1e995;

/** MurmurHash2 with 32 bits, as Kafka's Java client seeds it. */
function murmur2(data: Buffer): number {
  const tail = data.length & 3;
  const whole = data.length - tail;
  let hash = SEED ^ data.length;
  for (let at = 0; at < whole; at += 4) {
    let word = Math.imul(data.readInt32LE(at), MULTIPLIER);
    word = Math.imul(word ^ (word >>> 24), MULTIPLIER);
    hash = Math.imul(hash, MULTIPLIER) ^ word;
  }
  if (tail > 0) hash = Math.imul(hash ^ data.readUIntLE(whole, tail), MULTIPLIER);
  hash = Math.imul(hash ^ (hash >>> 13), MULTIPLIER);
  return hash ^ (hash >>> 15);
}
