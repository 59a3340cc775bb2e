import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { describe, expect, it } from 'vitest';
import { busClientSettings } from '../../../../lambdas/runtime/base/client-settings.ts';
import type { BusEntry } from '../../../../lambdas/runtime/bus/event-bus.ts';
import { eventBridgeBus } from '../../../../lambdas/runtime/bus/eventbridge-bus.ts';
import { STUB_CONFIGURATION, type StubAnswer, stubHandler } from '../../../support/stub-client.ts';

function busAnswering(answer: StubAnswer, configuration = {}) {
  const handler = stubHandler(() => answer);
  const client = new EventBridgeClient({ ...STUB_CONFIGURATION, requestHandler: handler, ...configuration });
  return { bus: eventBridgeBus({ client, busName: 'orders' }), requests: handler.requests, client };
}

const entry: BusEntry = { source: 'shop', detailType: 'OrderPlaced', detail: '{}', traceHeader: 'Root=1' };

describe('the bus on EventBridge', () => {
  it('answers for every entry, also for those that EventBridge left out', async () => {
    const { bus, requests } = busAnswering({
      status: 200,
      body: {
        FailedEntryCount: 1,
        Entries: [{ EventId: 'id-1' }, { ErrorCode: 'ThrottlingException', ErrorMessage: 'slow down' }],
      },
    });
    expect(await bus.put([entry, entry, entry], 1_000)).toEqual([
      { ok: true, id: 'id-1' },
      { ok: false, code: 'ThrottlingException', message: 'slow down' },
      { ok: false, code: 'NO_ANSWER', message: expect.any(String) },
    ]);
    const sent = {
      EventBusName: 'orders',
      Source: 'shop',
      DetailType: 'OrderPlaced',
      Detail: '{}',
      TraceHeader: 'Root=1',
    };
    expect(requests).toEqual([{ Entries: [sent, sent, sent] }]);
  });

  it('takes an empty answer for no answer', async () => {
    const { bus } = busAnswering({ status: 200, body: {} });
    expect(await bus.put([entry], 1_000)).toMatchObject([{ ok: false, code: 'NO_ANSWER' }]);
  });

  const failures: readonly (readonly [string, StubAnswer, object])[] = [
    ['a server error', { status: 500, body: { __type: 'InternalException' } }, { name: 'InternalException' }],
    ['a throttle', { status: 400, body: { __type: 'ThrottlingException' } }, { name: 'ThrottlingException' }],
    [
      'a broken connection',
      { error: Object.assign(new Error('reset'), { code: 'ECONNRESET' }) },
      { code: 'ECONNRESET' },
    ],
  ];
  for (const retryMode of ['standard', 'adaptive']) {
    it.each(failures)(
      `tries once on %s, though the client retries (${retryMode})`,
      async (_, answer, error) => {
        const { bus, requests } = busAnswering(answer, { maxAttempts: 5, retryMode });
        await expect(bus.put([entry], 1_000)).rejects.toMatchObject(error);
        expect(requests).toHaveLength(1);
      },
    );
  }

  it("tries once through a client that caches its middleware, and leaves its owner's retries alone", async () => {
    const broken = { status: 500, body: { __type: 'InternalException' } };
    const { bus, requests, client } = busAnswering(broken, { maxAttempts: 2, cacheMiddleware: true });
    await expect(client.send(new PutEventsCommand({ Entries: [] }))).rejects.toThrow();
    expect(requests).toHaveLength(2);
    await expect(bus.put([entry], 1_000)).rejects.toThrow();
    await expect(bus.put([entry], 1_000)).rejects.toThrow();
    expect(requests).toHaveLength(4);
  });

  it('gives a silent call up', async () => {
    const { bus, requests } = busAnswering({ silent: true });
    await expect(bus.put([entry], 20)).rejects.toMatchObject({
      code: 'PUBLISH_TIMEOUT',
      message:
        'PutEvents did not respond within 20 ms, so the events may have been published; they are published again.',
    });
    expect(requests).toHaveLength(1);
  });

  it('gives a call up that hangs before it is sent', async () => {
    const { bus, requests } = busAnswering(
      { silent: true },
      { credentials: () => new Promise(() => undefined) },
    );
    await expect(bus.put([entry], 20)).rejects.toMatchObject({ code: 'PUBLISH_TIMEOUT' });
    expect(requests).toHaveLength(0);
  });

  it("closes the connection of a silent call, by the client's own timeout", async () => {
    const server = createServer(() => {});
    const closed = new Promise<void>((resolve) => {
      server.on('connection', (socket) => socket.on('close', () => resolve()));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const client = new EventBridgeClient({
      ...busClientSettings(50),
      region: 'us-east-1',
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
      endpoint: `http://127.0.0.1:${port}`,
    });
    await expect(eventBridgeBus({ client, busName: 'orders' }).put([entry], 50)).rejects.toThrow();
    await closed;
    server.close();
  });
});
