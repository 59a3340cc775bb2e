import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { Queue } from '../../lambdas/runtime/sources/sqs/queue.ts';
import { type Case, type Differences, describeCases, type Subject } from './cases.ts';

/** A message in flight. */
interface InFlight {
  readonly receiptHandle: string;
  readonly body: string;
  readonly receiveCount: number;
}

/** A queue whose messages stay hidden for ten minutes, and the other side of it. */
export interface QueueSubject {
  readonly queue: Queue;
  send(body: string): Promise<void>;
  /** The next message, `undefined` when none is visible within the time. @param withinMs - @default 0 */
  receive(withinMs?: number): Promise<InFlight | undefined>;
  /** The queue's time, epoch milliseconds. */
  now(): number;
  delete(message: InFlight): Promise<void>;
}

/** Within this, a message that may be received is: no machine takes as long. */
const SOON_MS = 120_000;

/** SQS counts visibility in seconds. */
const ROUNDING_MS = 1_000;

const cases: readonly Case<QueueSubject>[] = [
  [
    'a received message is hidden',
    async (subject) => {
      const message = await sendAndReceive(subject);
      expect(message.receiveCount).toBe(1);
      expect(await subject.receive(1_000)).toBeUndefined();
      await subject.delete(message);
    },
  ],
  [
    'visibility 0 shows a message at once; every receive counts',
    async (subject) => {
      const first = await sendAndReceive(subject);
      await subject.queue.changeVisibility(first.receiptHandle, 0);
      const second = await subject.receive(SOON_MS);
      expect(second).toMatchObject({ body: first.body, receiveCount: 2 });
      await subject.delete(second as InFlight);
    },
  ],
  [
    'a shorter visibility shows a message earlier, and not before',
    async (subject) => {
      const first = await sendAndReceive(subject);
      const changedAt = subject.now();
      await subject.queue.changeVisibility(first.receiptHandle, 3);
      const second = await subject.receive(SOON_MS);
      expect(second).toMatchObject({ body: first.body });
      expect(subject.now() - changedAt).toBeGreaterThanOrEqual(3_000 - ROUNDING_MS);
      await subject.delete(second as InFlight);
    },
  ],
  [
    'a longer visibility may follow a shorter one',
    async (subject) => {
      // It must be lengthened before it has passed; where it was not, a longer one is shortened and lengthened.
      for (let shortS = 2; ; shortS *= 2) {
        const message = await sendAndReceive(subject);
        const changedAt = subject.now();
        await subject.queue.changeVisibility(message.receiptHandle, shortS);
        const isLengthened = await subject.queue.changeVisibility(message.receiptHandle, 600).then(
          () => subject.now() - changedAt < shortS * 1_000 - ROUNDING_MS,
          () => false,
        );
        const shown = await subject.receive(shortS * 1_000 + ROUNDING_MS);
        await subject.delete(shown ?? message);
        if (!isLengthened) continue;
        expect(shown).toBeUndefined();
        return;
      }
    },
  ],
  [
    'refused: a receipt that SQS did not issue',
    async ({ queue }) => {
      await expect(queue.changeVisibility('no-such-receipt', 1)).rejects.toThrow();
    },
  ],
  [
    'refused: a visibility below 0 or above 12 hours',
    async (subject) => {
      const message = await sendAndReceive(subject);
      const { queue } = subject;
      await expect(queue.changeVisibility(message.receiptHandle, -1)).rejects.toThrow();
      await expect(queue.changeVisibility(message.receiptHandle, 43_201)).rejects.toThrow();
      await subject.delete(message);
    },
  ],
];

/** The suite that every implementation of the queue port must pass. */
export function describeQueue(
  name: string,
  make: () => Promise<Subject<QueueSubject>>,
  differences?: Differences,
): void {
  describeCases(name, cases, make, differences);
}

async function sendAndReceive(subject: QueueSubject): Promise<InFlight> {
  const body = randomUUID();
  await subject.send(body);
  const message = await subject.receive(SOON_MS);
  expect(message?.body).toBe(body);
  return message as InFlight;
}
