import type { LambdaClient } from '@aws-sdk/client-lambda';
import type { ConsumerEntry } from '../../lambdas/runtime/operations/directory.ts';
import type { Check } from '../../lambdas/runtime/sources/sqs/check-messages.ts';
import { checkBodies } from './invoke.ts';

/**
 * The event that the deployed function of a consumer reads in a message which had none when it was rejected; `unread` if it still cannot
 * read one, `unknown` if it could not be asked.
 */
export type DeployedReading = Pick<Extract<Check, { ok: true }>, 'eventId' | 'type'> | 'unread' | 'unknown';

/**
 * Asks the deployed function of a consumer which messages without an event it can read. An operator's decision about such a message is
 * made under its event's id: a function that can read it and has started before the decision does not look for the row of the body.
 *
 * @returns a reading for each body, in order
 */
export async function readDeployed(
  client: LambdaClient,
  consumer: Pick<ConsumerEntry, 'name' | 'function' | 'alias'>,
  bodies: readonly string[],
): Promise<DeployedReading[]> {
  try {
    const checks = await checkBodies(client, consumer, bodies);
    return checks.map((check) => (check.ok ? { eventId: check.eventId, type: check.type } : 'unread'));
  } catch {
    return bodies.map(() => 'unknown');
  }
}

/** Tells an operator what remains of a decision about a message whose reading is unknown. */
export function unknownReadingText({ name }: Pick<ConsumerEntry, 'name'>): string {
  return (
    `It is unknown whether the deployed function of ${name} can read a message that was unreadable when it was rejected. If it can, a redrive in ` +
    'the AWS console runs its handler, despite this decision. Use only `dlq redrive`, which deletes it.'
  );
}
