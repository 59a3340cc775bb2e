import { MailroomError } from '../../lambdas/runtime/errors.ts';
import type { ConsumerEntry, Directory } from '../../lambdas/runtime/operations/directory.ts';

/** A queue of one consumer's dead letters: events that its rule could not deliver (`rule`), or messages that it rejected (`consumer`). */
interface ConsumerDeadLetters {
  /** `rule:<consumer>` or `consumer:<consumer>`. */
  readonly name: string;
  readonly kind: 'rule' | 'consumer';
  readonly url: string;
  readonly consumer: ConsumerEntry;
}

/** The batches that the mapping of the table's stream discarded. */
interface StreamDeadLetters {
  readonly name: 'stream';
  readonly kind: 'stream';
  readonly url: string;
}

/** A queue of dead letters. */
export type DeadLetterQueue = ConsumerDeadLetters | StreamDeadLetters;

/** Where dead letters are: a queue of them, or the DEAD rows of the outbox. */
export type DeadLetterSource = DeadLetterQueue | { readonly name: 'dead'; readonly kind: 'dead' };

/** Every queue of dead letters of a Mailroom, in the order of the flow. */
export function deadLetterQueues({ mailroom, consumers }: Directory): DeadLetterQueue[] {
  return [
    { name: 'stream', kind: 'stream', url: mailroom.failureQueue },
    ...consumers.map(undeliveredTo),
    ...consumers.map(rejectedBy),
  ];
}

/** Where a rule leaves events that it could not put into the consumer's queue. */
export function undeliveredTo(consumer: ConsumerEntry): ConsumerDeadLetters {
  return { name: `rule:${consumer.name}`, kind: 'rule', url: consumer.undeliveredQueue, consumer };
}

/** Where SQS moves the messages that a consumer rejected. */
export function rejectedBy(consumer: ConsumerEntry): ConsumerDeadLetters {
  return { name: `consumer:${consumer.name}`, kind: 'consumer', url: consumer.deadLetterQueue, consumer };
}

/** Every dead-letter source of a Mailroom. */
export function deadLetterSources(directory: Directory): DeadLetterSource[] {
  return [{ name: 'dead', kind: 'dead' }, ...deadLetterQueues(directory)];
}

/**
 * Finds a dead-letter source by its name.
 *
 * @throws `NO_SUCH_SOURCE`, naming those that there are
 */
export function deadLetterSource(directory: Directory, name: string): DeadLetterSource {
  const sources = deadLetterSources(directory);
  const found = sources.find((source) => source.name === name);
  if (found !== undefined) return found;
  throw new MailroomError(
    'NO_SUCH_SOURCE',
    `There is no dead-letter source "${name}" in ${directory.mailroom.stack}; there are: ${sources.map((source) => source.name).join(', ')}.`,
  );
}
