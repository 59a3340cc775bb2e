import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { ConsumerEntry, Directory, SourceConsumer } from '../../lambdas/runtime/operations/directory.ts';

/**
 * Returns a consumer by its name, for what concerns its inbox alone: also one of another source.
 *
 * @throws `NO_SUCH_CONSUMER`, listing the consumers
 */
export function withInbox(
  { directory, consumer }: { readonly directory: Directory; consumer(name: string): ConsumerEntry },
  name: string,
): ConsumerEntry | SourceConsumer {
  return directory.sourceConsumers?.find((entry) => entry.name === name) ?? consumer(name);
}

/**
 * Returns a consumer by its name that has a queue and a function.
 *
 * @throws `NO_SUCH_CONSUMER`, listing the consumers, or if it is one of another source
 */
export function consumerNamed(directory: Directory, name: string): ConsumerEntry {
  const found = directory.consumers.find((entry) => entry.name === name);
  if (found !== undefined) return found;
  const other = directory.sourceConsumers?.find((entry) => entry.name === name);
  if (other !== undefined) throw withoutQueue(other);
  const names = directory.consumers.map((entry) => entry.name).join(', ') || 'none';
  throw new MailroomError(
    'NO_SUCH_CONSUMER',
    `Consumer "${name}" does not exist in ${directory.mailroom.stack}. Consumers: ${names}.`,
  );
}

/** The error of a command that needs the queue or the function of a consumer which has none. */
export function withoutQueue(
  { name, from }: SourceConsumer,
  code: 'NO_SUCH_CONSUMER' | 'NO_SUCH_SOURCE' = 'NO_SUCH_CONSUMER',
): MailroomError {
  return new MailroomError(
    code,
    `Consumer "${name}" receives from ${from}: it has no queue, function or rule of this Mailroom, so this command does not apply to it. Its messages are in ` +
      '`messages list`; pause it, and publish its dead letters again, at its source.',
  );
}
