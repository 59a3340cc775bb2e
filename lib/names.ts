import { unless } from './refusal.ts';

const CONSUMER_NAME = /^[a-z][a-z0-9-]{0,47}$/;

/** The longest `source` (EventBridge API reference, PutEventsRequestEntry). */
const SOURCE_LENGTH_MAX = 256;

/** What is wrong with a consumer's name: it becomes part of keys. */
export function consumerNameProblems(name: string): string[] {
  return unless(
    CONSUMER_NAME.test(name),
    `name is "${name}", but must have 1 to 48 lower-case letters, digits and hyphens and begin with a letter: it ` +
      'is part of the keys of the inbox. Choose a name like "payments", and keep it: another name is another consumer.',
  );
}

/** What is wrong with a service's name: it is the EventBridge `source` of what the service writes. */
export function serviceNameProblems(property: string, service: string): string[] {
  return unless(
    typeof service === 'string' &&
      /^[A-Za-z0-9._/-]+$/.test(service) &&
      service.length <= SOURCE_LENGTH_MAX &&
      !service.startsWith('aws.'),
    `${property} is "${service}", but must have 1 to ${SOURCE_LENGTH_MAX} letters, digits, ".", "_", "-" or "/" and ` +
      'not begin with "aws.", which EventBridge keeps for AWS: it is the source of the service\'s events. Choose ' +
      'a name like "orders".',
  );
}
