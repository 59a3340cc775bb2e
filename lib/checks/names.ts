import { RESERVED_SOURCE } from '../../lambdas/runtime/events/event.ts';
import { unless } from './refusal.ts';

const CONSUMER_NAME = /^[a-z][a-z0-9-]{0,47}$/;

/** The maximum length of a `source` (EventBridge API reference, PutEventsRequestEntry). */
const SOURCE_LENGTH_MAX = 256;

/** Validates a consumer's name, which is part of keys. */
export function consumerNameProblems(name: string): string[] {
  return unless(
    CONSUMER_NAME.test(name),
    `name is "${name}", but must be 1 to 48 lower-case letters, digits and hyphens, starting with a letter: it ` +
      'is part of the inbox keys. Choose a name like "payments", and keep it: a new name makes a new consumer.',
  );
}

/** Validates a service's name, which is the EventBridge `source` of its events. */
export function serviceNameProblems(property: string, service: string): string[] {
  if (service === RESERVED_SOURCE) {
    return [
      `${property} is "${service}", which is reserved for Mailroom's own events. Choose a name like "orders".`,
    ];
  }
  return unless(
    typeof service === 'string' &&
      /^[A-Za-z0-9._/-]+$/.test(service) &&
      service.length <= SOURCE_LENGTH_MAX &&
      !service.startsWith('aws.'),
    `${property} is "${service}", but must be 1 to ${SOURCE_LENGTH_MAX} letters, digits, ".", "_", "-" or "/" and ` +
      'not start with "aws.", which EventBridge reserves for AWS: it is the source of the service\'s events. Choose ' +
      'a name like "orders".',
  );
}
