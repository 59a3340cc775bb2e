import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { QUEUE_OUTPUTS } from '../../../demo/readings.ts';
import { runDemo } from '../../../demo/run.ts';

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
});

/** An AWS whose tables cannot be read. */
async function unreadableAws() {
  const server = createServer((request, response) => {
    if (String(request.headers['x-amz-target']).endsWith('.Scan')) response.statusCode = 400;
    response.end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test('a run that cannot read its results ends with the error, and retries no order', async () => {
  const { server, endpoint } = await unreadableAws();
  const environment = { AWS_ENDPOINT_URL: endpoint, AWS_REGION: 'us-east-1' };
  for (const [name, value] of Object.entries({
    ...environment,
    ...{ AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' },
  }))
    vi.stubEnv(name, value);
  vi.useFakeTimers({ toFake: ['setTimeout'], shouldAdvanceTime: true });
  const call = vi.fn(async () => ({ status: 500, text: 'not yet', headers: {} }));
  const queues = Object.values(QUEUE_OUTPUTS).flatMap((name) =>
    ['QueueUrl', 'DlqUrl'].map((suffix) => [`${name}${suffix}`, `${endpoint}/${name}${suffix}`]),
  );
  const outputs = {
    ...Object.fromEntries(queues),
    ...{ TableName: 'table', BankTableName: 'bank', OrdersUrl: `${endpoint}/` },
  };
  const steps = { say: () => {}, step: () => {}, detail: () => {} };
  try {
    await expect(runDemo({ outputs, endpoint, orders: 200, steps, call })).rejects.toMatchObject({
      $metadata: { httpStatusCode: 400 },
    });
    const calls = call.mock.calls.length;
    expect(calls).toBeGreaterThan(0);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(call.mock.calls.length).toBe(calls);
  } finally {
    server.close();
  }
});
