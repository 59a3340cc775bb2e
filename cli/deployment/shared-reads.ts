import type { SQSClient } from '@aws-sdk/client-sqs';

/**
 * Lets concurrent reads of a queue's attributes share one request for all of them: a report reads the depth of a queue and checks its
 * settings at the same time.
 */
export function sharingReads(client: SQSClient): SQSClient {
  const reading = new Map<string, Promise<unknown>>();
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        if (commandName !== 'GetQueueAttributesCommand') return next(args);
        const { QueueUrl } = args.input as { readonly QueueUrl?: string };
        const key = String(QueueUrl);
        const shared = reading.get(key) as ReturnType<typeof next> | undefined;
        if (shared !== undefined) return shared;
        const made = next({ ...args, input: { ...args.input, AttributeNames: ['All'] } });
        reading.set(key, made);
        try {
          return await made;
        } finally {
          reading.delete(key);
        }
      },
    { step: 'initialize', name: 'sharedReads' },
  );
  return client;
}
