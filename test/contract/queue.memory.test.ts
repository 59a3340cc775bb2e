import { manualClock, memoryQueue } from '../../lambdas/runtime/testing.ts';
import { describeQueue } from './queue-contract.ts';

describeQueue('the queue in memory', async () => {
  const clock = manualClock();
  const queue = memoryQueue({ clock });

  async function receive(withinMs = 0) {
    await clock.advance(withinMs);
    const [record] = queue.receive(1);
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
      delete: async (message) => queue.delete(message.receiptHandle),
    },
    remove: async () => undefined,
  };
});
