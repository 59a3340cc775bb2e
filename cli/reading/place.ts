import pMap from 'p-map';
import type { ConsumerEntry, Directory } from '../../lambdas/runtime/operations/directory.ts';
import type { Letter, Queues } from '../../lambdas/runtime/operations/queues.ts';

/**
 * A queue in which a message is dead: what the stream mapping gave up on (`stream`), what a rule could not deliver
 * (`rule:<consumer>`), what a consumer rejected (`consumer:<consumer>`). The fourth place, `dead`, is no queue but the DEAD
 * rows of the outbox.
 */
export interface QueuePlace {
  readonly place: string;
  readonly kind: 'stream' | 'rule' | 'consumer';
  readonly url: string;
  /** Whose letters these are; the stream's are nobody's. */
  readonly consumer?: ConsumerEntry | undefined;
}

/** Every queue of a Mailroom in which a message is dead, in the order of the flow. */
export function queuePlaces({ mailroom, consumers }: Directory): QueuePlace[] {
  return [
    { place: 'stream', kind: 'stream', url: mailroom.failureQueue },
    ...consumers.map((consumer) => rulePlace(consumer)),
    ...consumers.map((consumer) => consumerPlace(consumer)),
  ];
}

/** Where a rule leaves what it could not put into the consumer's queue. */
export function rulePlace(consumer: ConsumerEntry): QueuePlace {
  return { place: `rule:${consumer.name}`, kind: 'rule', url: consumer.undeliveredQueue, consumer };
}

/** Where SQS moves what a consumer has rejected. */
export function consumerPlace(consumer: ConsumerEntry): QueuePlace {
  return { place: `consumer:${consumer.name}`, kind: 'consumer', url: consumer.deadLetterQueue, consumer };
}

/** Letters are hidden while they are looked through, and shown again at once; this long if that fails. Seconds. */
const LOOK_HIDES_S = 15;

/** Looks at the letters of a place and puts them back. @param limit - at most this many are looked at */
export async function peek(queues: Queues, url: string, limit: number): Promise<Letter[]> {
  const letters = await queues.receive(url, { limit, hideS: LOOK_HIDES_S });
  await pMap(letters, (letter) => queues.show(url, letter), { concurrency: 8 });
  return letters;
}
