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

/** The error of a command that needs the queue or the function of a consumer which has none. */
export function withoutQueue({ name, from }: SourceConsumer): MailroomError {
  return new MailroomError(
    'NO_SUCH_CONSUMER',
    `Consumer "${name}" receives from ${from}: it has no queue, function or rule of this Mailroom, so this command does not apply to it. Its messages are in ` +
      '`messages list`; pause it and redrive its dead letters at its source.',
  );
}
