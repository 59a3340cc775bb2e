import { manualClock, memoryQueue } from '../../testing/index.ts';
import { describeQueue } from './queue-contract.ts';

describeQueue('the queue in memory', async () => {
  const clock = manualClock();
  const queue = memoryQueue({ clock, visibilityTimeoutMs: 600_000 });

  async function receive(withinMs = 0) {
    const until = clock.now() + withinMs;
    let [record] = queue.receive(1);
    while (!record && clock.now() < until) {
      await clock.advance(Math.min(1_000, until - clock.now()));
      [record] = queue.receive(1);
    }
    if (!record) return undefined;
    const { receiptHandle, body, attributes } = record;
    return { receiptHandle, body, receiveCount: Number(attributes.ApproximateReceiveCount) };
  }

  return {
    subject: {
      queue,
      send: async (body: string) => {
        queue.send(body);
      },
      receive,
      now: () => clock.now(),
      delete: async (message) => queue.delete(message.receiptHandle),
    },
    remove: async () => undefined,
  };
});
