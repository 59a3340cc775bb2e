import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Engine, startEngine } from '../../localstack/engine.ts';
import { freePort } from '../../localstack/free-port.ts';
import { launchBrowser } from '../browser/support/chromium.ts';
import { signature } from './engine-requests.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

/** A public name that resolves to 127.0.0.1; without a network, the browser resolves it by this rule. */
const NAME = 'localhost.localstack.cloud';

const browser: Browser | undefined = await launchBrowser([
  `--host-resolver-rules=MAP ${NAME} 127.0.0.1`,
  // Recent versions of Chrome ask before a public page reaches this machine. Other browsers do not.
  '--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,PrivateNetworkAccessSendPreflights',
]);

let engine: Engine;

beforeAll(async () => {
  engine = await startEngine({ port: await freePort(), env: {} });
  expect(engine).toMatchObject({ kind: 'ministack', startedHere: true });
});

afterAll(async () => {
  await browser?.close();
  await engine?.stop();
});

/** A request in the query protocol, which a link can carry. */
function query(parameters: Record<string, string>): string {
  return `/?${new URLSearchParams({ Version: '2010-05-15', ...parameters })}`;
}

function createStack(StackName: string): string {
  const TemplateBody = JSON.stringify({ Resources: { Queue: { Type: 'AWS::SQS::Queue' } } });
  return query({ Action: 'CreateStack', StackName, TemplateBody });
}

async function signed(path: string): Promise<string> {
  const authorization = signature('cloudformation');
  return await (await fetch(`${engine.endpoint}${path}`, { headers: { authorization } })).text();
}

/** How a page causes a request without asking for permission. */
const MEANS = {
  'an image': (url: string) => `new Image().src = ${JSON.stringify(url)}`,
  'a fetch': (url: string) => `fetch(${JSON.stringify(url)}, { mode: 'no-cors' }).catch(() => {})`,
  'a fetch without a Referer': (url: string) =>
    `fetch(${JSON.stringify(url)}, { mode: 'no-cors', referrerPolicy: 'no-referrer' }).catch(() => {})`,
  'a navigation': (url: string) => `location.href = ${JSON.stringify(url)}`,
};

describe.skipIf(browser === undefined)('a web page in a browser', () => {
  const cases = ['http', 'https'].flatMap((protocol) =>
    [NAME, '127.0.0.1'].flatMap((host) =>
      Object.entries(MEANS).map(([means, script]) => [protocol, means, host, script] as const),
    ),
  );
  test.each(cases)('at %s cannot create a stack by %s at %s', async (protocol, means, host, script) => {
    const context = await browser?.newContext();
    const page = await context?.newPage();
    if (page === undefined) throw new Error('There is no page.');
    await page.route(`${protocol}://evil.example/`, (route) =>
      route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>evil</title>' }),
    );
    await page.goto(`${protocol}://evil.example/`);
    const name = `evil-${protocol}-${means}-${host}`.replaceAll(/[^a-z0-9-]/g, '-');
    const isIt = (url: string): boolean => url.includes(name);
    const ended = Promise.race([
      page.waitForEvent('response', (response) => isIt(response.url())),
      page.waitForEvent('requestfailed', (request) => isIt(request.url())),
    ]);
    await page.evaluate(script(`http://${host}:${engine.port}${createStack(name)}`)).catch(() => {});
    await ended;
    await context?.close();
    expect(await signed(query({ Action: 'DescribeStacks' }))).not.toContain(name);
  });

  test('the same request with a signature creates the stack', async () => {
    await signed(createStack('wanted'));
    expect(await signed(query({ Action: 'DescribeStacks' }))).toContain('wanted');
  });
});
