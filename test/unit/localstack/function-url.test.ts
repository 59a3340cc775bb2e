import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from 'vitest';
import { createShop } from '../../../demo/shop.ts';
import { callFunctionUrl, reachableUrl } from '../../../localstack/function-url.ts';

const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

/** A host name that resolves nowhere, as LocalStack gives to a function URL. */
const URL_HOST = 'abc.lambda-url.us-east-1.localhost.invalid:4566';

interface Heard {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly host?: string | undefined;
  readonly body: string;
}

/** An engine that keeps what it hears. An answer of 0 cuts the connection; the last one is given again and again. */
async function engine(...statuses: readonly number[]) {
  const heard: Heard[] = [];
  const server = createServer(async (request, response) => {
    const { method, url, headers } = request;
    heard.push({ method, url, host: headers.host, body: await text(request) });
    response.statusCode = statuses[heard.length - 1] ?? statuses.at(-1) ?? 200;
    if (response.statusCode === 0) request.socket.destroy();
    else response.end('{"orderId":"1"}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(async () => await new Promise((resolve) => server.close(resolve)));
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, heard };
}

describe('a function URL', () => {
  test('a function URL is called at the engine with a Host header, so its host need not resolve', async () => {
    const { endpoint, heard } = await engine(201);
    const call = { method: 'POST', body: '{"ä":1}' };
    const answer = await callFunctionUrl(endpoint, `http://${URL_HOST}/orders?a=1`, call);
    expect(answer).toMatchObject({ status: 201, text: '{"orderId":"1"}' });
    expect(heard).toEqual([{ method: 'POST', url: '/orders?a=1', host: URL_HOST, body: call.body }]);
  });

  test('a function URL is shown in the form that resolves', () => {
    const endpoint = 'http://127.0.0.1:4566';
    expect(reachableUrl(endpoint, 'https://abc123.lambda-url.us-east-1.on.aws/orders?a=1')).toBe(
      `${endpoint}/_aws/lambda-url/abc123/orders?a=1`,
    );
    const url = 'http://abc123.lambda-url.us-east-1.localhost.localstack.cloud:4566/';
    expect(reachableUrl(endpoint, url)).toBe(url);
  });
});

test("the demo places an order even if the API's host does not resolve, and retries until it is answered", async () => {
  const { endpoint, heard } = await engine(503, 0, 201);
  const shop = createShop({ outputs: { OrdersUrl: `http://${URL_HOST}/` }, endpoint, runId: 'run' });
  let placed = 0;
  const onPlaced = () => {
    placed += 1;
  };
  await shop.placeOrders(2, { ratePerSecond: 1_000, onPlaced });
  expect(placed).toBe(2);
  expect(heard.length).toBeGreaterThanOrEqual(4);
  for (const { url, host } of heard) expect({ url, host }).toEqual({ url: '/orders', host: URL_HOST });
});
