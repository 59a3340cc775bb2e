import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { numberingServices } from './order-of-aggregate.ts';
import { isStrict } from './place-of-message.ts';

/** The consumer of this name, which has a strict order. @throws `BAD_ARGUMENT` */
export function strictConsumer(deployment: Deployment, name: string): ConsumerEntry {
  const entry = deployment.consumer(name);
  if (isStrict(entry)) return entry;
  throw new MailroomError(
    'BAD_ARGUMENT',
    `The consumer ${name} has no strict order, so no event of it waits for another. If this has changed, deploy its stack.`,
  );
}

/** The service that numbers an aggregate. @throws `BAD_ARGUMENT` if it is not given and the consumer takes numbered events of several, or of none by this name */
export function sourceOf(entry: ConsumerEntry, given: string | undefined): string {
  const services = numberingServices(entry);
  const [only = ''] = services;
  if (given === undefined ? services.length === 1 : services.includes(given)) return given ?? only;
  const problem = given === undefined ? 'Its service is not named' : `No service "${given}" numbers it`;
  throw new MailroomError(
    'BAD_ARGUMENT',
    `${problem}: ${entry.name} takes numbered events of ${services.join(', ')}. Name one with --source.`,
  );
}
