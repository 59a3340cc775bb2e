import { Readable } from 'node:stream';
import { GetQueueAttributesCommand, SQSClient } from '@aws-sdk/client-sqs';
import { expect, test, vi } from 'vitest';
import { clientSettings } from '../../../../lambdas/runtime/base/client-settings.ts';

test('an SQS client sends to its endpoint, whatever host the URL of a queue has, and warns of nothing', async () => {
  vi.stubEnv('AWS_ENDPOINT_URL', 'http://127.0.0.1:4570');
  const warn = vi.spyOn(console, 'warn').mockReturnValue();
  const hosts: string[] = [];
  const client = new SQSClient({
    ...clientSettings,
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    requestHandler: {
      handle: async ({ hostname, port }: { hostname: string; port?: number }) => {
        hosts.push(`${hostname}:${port}`);
        const headers = { 'content-type': 'application/x-amz-json-1.0' };
        return { response: { statusCode: 200, headers, body: Readable.from(['{"Attributes":{}}']) } };
      },
    } as never,
  });
  await client.send(
    new GetQueueAttributesCommand({
      QueueUrl: 'http://localhost:4570/queue/us-east-1/000000000000/Orders',
      AttributeNames: ['QueueArn'],
    }),
  );
  expect(hosts).toEqual(['127.0.0.1:4570']);
  expect(warn).not.toHaveBeenCalled();
});
