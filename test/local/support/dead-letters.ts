import { randomUUID } from 'node:crypto';
import { SSMClient } from '@aws-sdk/client-ssm';
import { expect, inject } from 'vitest';
import type { Consumer } from '../../../demo/readings.ts';
import { asDelivered } from '../../../demo/shop.ts';
import { PaymentCaptured } from '../../../lambdas/example/events.ts';
import type { Envelope } from '../../../lambdas/runtime/events/event.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import { sqsQueues } from '../../../lambdas/runtime/operations/sqs-queues.ts';
import { readDirectory } from '../../../lambdas/runtime/operations/ssm-directory.ts';
import type { InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../../lambdas/runtime/store/row-schema.ts';
import { sqsClient } from '../../support/aws.ts';
import { envelopeOf } from '../../support/envelope-of.ts';
import { eventually } from './eventually.ts';
import { mailroom, type Run } from './mailroom.ts';
import { put, tableName } from './order-system.ts';
import { outboxOf } from './unpublished-order.ts';

export const queues = sqsQueues(sqsClient(inject('endpoint')));
/** The deployed order system's. */
export const directory = await readDirectory(new SSMClient({}), tableName);

/** What the directory says of a consumer. */
export function consumerOf(name: Consumer): ConsumerEntry {
  const found = directory.consumers.find((entry) => entry.name === name);
  if (found === undefined) throw new Error(`No consumer ${name}`);
  return found;
}

/** The payment of an order, as an event that was not sent. */
export async function paymentCaptured(orderId = randomUUID() as string, sequence = 1): Promise<Envelope> {
  const data = { orderId, customerId: 'customer', amountCents: 1_350, chargeId: randomUUID() };
  const [entry] = await outboxOf('payments').entries([
    PaymentCaptured.create({ aggregateId: orderId, sequence, data }),
  ]);
  return envelopeOf(entry?.Put.Item);
}

/** The body in which an event of payments is delivered. */
export function delivered(envelope: Envelope): string {
  return asDelivered('payments', envelope);
}

/** Puts a body into a dead-letter queue. @returns the message's id */
export async function die(where: `${'rule' | 'consumer'}:${Consumer}`, body: string): Promise<string> {
  const [kind, name] = where.split(':') as ['rule' | 'consumer', Consumer];
  const consumer = consumerOf(name);
  return queues.send((kind === 'rule' && consumer.undeliveredQueue) || consumer.deadLetterQueue, body);
}

/**
 * A payment whose message a consumer rejected for a cause: its row, and its dead letter.
 *
 * @param effects - the side effects of its handler @default none
 */
export async function rejectedPayment(
  consumer: Consumer,
  cause: string,
  effects?: InboxRow['effects'],
): Promise<{ readonly envelope: Envelope; readonly id: string }> {
  const envelope = await paymentCaptured();
  await put({
    ...inboxKey(consumer, envelope.eventId),
    schema: SCHEMA,
    status: 'REJECTED',
    fence: 'of-the-last-attempt',
    attempts: 5,
    type: envelope.type,
    rejectedAt: Date.now(),
    reason: 'ATTEMPTS_EXHAUSTED',
    lastError: cause,
    fingerprint: cause,
    ...(effects && { effects }),
  });
  return { envelope, id: await die(`consumer:${consumer}`, delivered(envelope)) };
}

/** The additional wait for tests that read the same queue: each reading hides the dead letters from the others. */
const TURNS_MS = 240_000;

/** Runs a command until it sees every dead letter: another test that reads the queue hides them for a moment. */
export async function seeing(...argv: readonly string[]): Promise<Run> {
  return eventually(async () => {
    const run = await mailroom(...argv);
    expect(run.err).not.toContain('NO_SUCH_DEAD_LETTER');
    return run;
  }, TURNS_MS);
}

/** The dead letters of `--json`, by id. */
export function byId(deadLetters: readonly { id: string }[]): Record<string, Record<string, unknown>> {
  return Object.fromEntries(deadLetters.map((deadLetter) => [deadLetter.id, deadLetter]));
}
