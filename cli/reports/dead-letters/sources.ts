import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { type DeadLetterQueue, deadLetterQueues } from '../../../lambdas/runtime/operations/dead-letters.ts';
import type { Directory } from '../../../lambdas/runtime/operations/directory.ts';

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
  const names = sources.map((source) => source.name);
  const meant = names.filter((known) => known.split(':').at(-1) === name.split(':').at(-1)).sort();
  const hint = meant.length === 0 ? '' : `Did you mean ${meant.join(' or ')}? `;
  throw new MailroomError(
    'NO_SUCH_SOURCE',
    `"${name}" is not a dead-letter source in ${directory.mailroom.stack}. ${hint}Sources: ${names.join(', ')}.`,
  );
}
