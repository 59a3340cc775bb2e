import { setImmediate, setTimeout } from 'node:timers/promises';
import type { QueueMessage, Queues } from '../../../../lambdas/runtime/operations/queues.ts';
import { mailroomInMemory, worker } from './mailroom-in-memory.ts';

/** Only a command that hangs takes more: the last ones pause, and together take a minute or more. */
const ROUNDS_MAX = 65_000;
const ROUNDS_WITHOUT_A_PAUSE = 5_000;

/** A {@link mailroomInMemory} on which a command can also make changes: its queues send and delete. */
export function operatingMailroom(...args: Parameters<typeof mailroomInMemory>) {
  const mailroom = mailroomInMemory(...args);
  const removed = new Set<string>();
  /** The bodies that were sent, by the URL of their queue. */
  const sent: { readonly url: string; readonly body: string }[] = [];
  const lettersOf = async (url: string): Promise<QueueMessage[]> => {
    const letters = await mailroom.queues.receive(url, { limit: Number.POSITIVE_INFINITY });
    return letters.filter(({ messageId }) => !removed.has(messageId));
  };
  const queues: Queues = {
    ...mailroom.queues,
    depth: async (url) => {
      const depth = await mailroom.queues.depth(url);
      const arn = `arn:aws:sqs:eu-west-1:111122223333:${url}`;
      return { ...depth, arn, waiting: url === worker.queue ? depth.waiting : (await lettersOf(url)).length };
    },
    receive: async (url, { limit }) => (await lettersOf(url)).slice(0, limit),
    send: async (url, body) => {
      sent.push({ url, body });
      return mailroom.queue.send(body);
    },
    remove: async (_url, { messageId }) => {
      removed.add(messageId);
    },
  };
  return {
    ...mailroom,
    queues,
    sent,
    /** Removes a dead letter, as another operator does. */
    remove: (messageId: string) => removed.add(messageId),
    /** Lets messages be delivered until a command is done, and time pass while something waits for it, and once: a command takes a moment, but loading it none. */
    until: async <T>(promise: Promise<T>): Promise<T> => {
      let settled = false;
      const watched = promise.finally(() => {
        settled = true;
      });
      watched.catch(() => {});
      await mailroom.clock.advance(200);
      for (let round = 0; round < ROUNDS_MAX && !settled; round += 1) {
        if (mailroom.queue.messages().some(({ visibleAt }) => visibleAt <= mailroom.clock.now()))
          await mailroom.deliver();
        else if (mailroom.clock.sleeping() > 0) await mailroom.clock.advance(200);
        // The command may read a file, which a busy machine delivers after thousands of rounds.
        await (round < ROUNDS_WITHOUT_A_PAUSE ? setImmediate() : setTimeout(1));
      }
      return watched;
    },
  };
}
