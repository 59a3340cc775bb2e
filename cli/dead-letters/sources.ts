import { MailroomError } from '../../lambdas/runtime/errors.ts';
import { type DeadLetterQueue, deadLetterQueues } from '../../lambdas/runtime/operations/dead-letters.ts';
import type { Directory } from '../../lambdas/runtime/operations/directory.ts';

/** A dead-letter source: a queue, or the DEAD rows of the outbox. */
export type DeadLetterSource = DeadLetterQueue | { readonly name: 'dead'; readonly kind: 'dead' };

/** Every dead-letter source of a Mailroom. */
export function deadLetterSources(directory: Directory): DeadLetterSource[] {
  return [{ name: 'dead', kind: 'dead' }, ...deadLetterQueues(directory)];
}

/**
 * Finds a dead-letter source by its name.
 *
 * @throws `NO_SUCH_SOURCE`, listing the sources
 */
export function deadLetterSource(directory: Directory, name: string): DeadLetterSource {
  const sources = deadLetterSources(directory);
  const found = sources.find((source) => source.name === name);
  if (found !== undefined) return found;
  throw new MailroomError(
    'NO_SUCH_SOURCE',
    `"${name}" is not a dead-letter source in ${directory.mailroom.stack}. Sources: ${sources.map((source) => source.name).join(', ')}.`,
  );
}
