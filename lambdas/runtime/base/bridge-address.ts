import { MailroomError } from './errors.ts';

/** The variable with the address of a bridge's target: a queue's URL, the ARN of a topic or stream, or the brokers. */
export const BRIDGE_TO = 'MAILROOM_BRIDGE_TO';

/**
 * Returns the address of a bridge's target: the given one, or that in the function's environment.
 *
 * @throws `BAD_CONFIG` if there is neither
 */
export function bridgeAddress(given: string | undefined, what: string): string {
  const address = given ?? process.env[BRIDGE_TO];
  if (address !== undefined && address !== '') return address;
  throw new MailroomError(
    'BAD_CONFIG',
    `The target of bridge has no ${what}: ${BRIDGE_TO} is not set. Set \`forwardsTo\` of the InboxConsumer, or pass the ${what}.`,
  );
}
