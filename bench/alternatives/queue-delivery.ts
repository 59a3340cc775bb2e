import type { MeteredAws } from '../aws/metered-aws.ts';

/** The maximum number of messages per ReceiveMessage or DeleteMessageBatch (SQS API reference). */
const SQS_BATCH_MAX = 10;

/** More receives of a message than this mean a defect in the measured system. */
const RECEIVES_MAX = 5;

/** Each started 64 KB of a request is billed as one request (SQS pricing). */
export const SQS_REQUEST_BYTES = 64 * 1_024;

/** Records a consumer rule's requests to its queue: one SendMessage per event. */
export function bookSend(aws: MeteredAws, body: string): void {
  aws.book('sqs', 'SendMessage', requestsOf([body]));
}

/**
 * Records the requests of Lambda's poller for one invocation: it receives the batch and then deletes the messages that did not
 * fail, ten at a time.
 *
 * @param bodies - the batch
 * @param deleted - the number of messages that did not fail
 */
export function bookInvocation(aws: MeteredAws, bodies: readonly string[], deleted: number): void {
  for (const received of chunks(bodies, SQS_BATCH_MAX))
    aws.book('sqs', 'ReceiveMessage', requestsOf(received));
  aws.book('lambda', 'Invoke', 1);
  for (let left = deleted; left > 0; left -= SQS_BATCH_MAX) aws.book('sqs', 'DeleteMessageBatch', 1);
}

/**
 * Delivers messages to a consumer as SQS and Lambda do, until none are left: in batches, redelivering failed ones.
 *
 * @param handle - throws to have a message redelivered
 * @throws the error of `handle` if a message failed too often
 */
export async function deliver(
  aws: MeteredAws,
  bodies: readonly string[],
  batchSize: number,
  handle: (body: string) => Promise<void>,
): Promise<void> {
  for (const body of bodies) bookSend(aws, body);
  let waiting = bodies;
  for (let receives = 1; waiting.length > 0; receives += 1) {
    const again: string[] = [];
    for (const batch of chunks(waiting, Math.min(batchSize, SQS_BATCH_MAX))) {
      const results = await Promise.allSettled(batch.map(handle));
      const failed = batch.filter((_, index) => results[index]?.status === 'rejected');
      const failure = results.find((result) => result.status === 'rejected');
      if (failure && receives === RECEIVES_MAX) throw failure.reason;
      bookInvocation(aws, batch, batch.length - failed.length);
      again.push(...failed);
    }
    waiting = again;
  }
}

/** Splits a list into chunks. */
export function chunks<T>(list: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, index) =>
    list.slice(index * size, (index + 1) * size),
  );
}

/** The billed requests of a call with these messages. */
export function requestsOf(bodies: readonly string[]): number {
  const bytes = bodies.reduce((sum, body) => sum + Buffer.byteLength(body), 0);
  return Math.max(1, Math.ceil(bytes / SQS_REQUEST_BYTES));
}
