import {
  LambdaClient,
  ListEventSourceMappingsCommand,
  UpdateEventSourceMappingCommand,
} from '@aws-sdk/client-lambda';
import { expect, inject, onTestFinished, test } from 'vitest';
import { openDeployment } from '../../../cli/deployment/deployment.ts';
import { createLive } from '../../../cli/page/server/live.ts';
import type { Flow } from '../../../cli/page/server/protocol.ts';
import { CONSUMERS_OF } from '../../../demo/readings.ts';
import { capturedIo } from '../../support/captured-io.ts';
import { eventually } from '../support/eventually.ts';
import { eventsWith, placeOrder } from '../support/order-system.ts';

const endpoint = inject('endpoint');

/** Opens a tab on the order system. @returns a function that returns its latest flow */
async function openTab() {
  const { io } = capturedIo({ env: { AWS_ENDPOINT_URL: endpoint } });
  const deployment = await openDeployment(io, { json: true });
  const live = createLive(deployment);
  let last: Flow | undefined;
  const close = live.subscribe((message) => {
    if (message.kind === 'flow') last = message.flow;
  });
  onTestFinished(close);
  const flow = (): Flow => {
    if (last === undefined) throw new Error('No flow was sent');
    return last;
  };
  return { live, deployment, flow };
}

/** Switches the mapping of a function on or off. */
async function switchMapping(FunctionName: string, Enabled: boolean): Promise<void> {
  const lambda = new LambdaClient({
    endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });
  const { EventSourceMappings = [] } = await lambda.send(
    new ListEventSourceMappingsCommand({ FunctionName }),
  );
  for (const { UUID } of EventSourceMappings)
    await lambda.send(new UpdateEventSourceMappingCommand({ UUID, Enabled }));
}

test('the flow shows an order on its way to every consumer, and its rates', async () => {
  const { flow } = await openTab();
  const { orderId } = await placeOrder();
  const types = ['OrderPlaced', 'PaymentCaptured', 'StockReserved'];
  await eventually(async () => {
    const written = new Map(
      (await eventsWith(orderId)).map(({ envelope }) => [envelope.eventId, envelope.correlationId]),
    );
    const own = flow().events.filter(({ eventId }) => written.has(eventId));
    expect(own.map(({ type }) => type)).toEqual(expect.arrayContaining(types));
    for (const { eventId, correlationId, type, status, consumers } of own) {
      expect({ status, correlationId }).toEqual({
        status: 'PUBLISHED',
        correlationId: written.get(eventId),
      });
      expect(consumers).toEqual(
        Object.fromEntries((CONSUMERS_OF[type ?? ''] ?? []).map((name) => [name, 'processed'])),
      );
    }
  });
  // A rate is of a whole interval: the one in which it was processed ends first.
  await eventually(async () => {
    const { committedPerS, processedPerS } = flow();
    expect(Math.max(...committedPerS)).toBeGreaterThan(0);
    expect(Math.max(...(processedPerS.payments ?? []))).toBeGreaterThan(0);
  });
  const { queues, unread, isSample } = flow();
  expect({ unread, isSample }).toEqual({ unread: [], isSample: false });
  expect(Object.keys(queues)).toEqual(
    expect.arrayContaining(['inventory', 'notifications', 'order-status', 'payments']),
  );
  await eventually(async () => expect(flow().status).toMatchObject({ stack: 'mailroom-local' }));
});

test('the flow turns red when a mapping is disabled, and names the command that enables it', async () => {
  const { live, deployment, flow } = await openTab();
  const broken = () => (flow().status?.findings ?? []).filter(({ what }) => what.includes('mapping'));
  await eventually(async () => expect(flow().status).not.toBeNull());
  expect(broken()).toEqual([]);
  const { function: functionName } = deployment.consumer('notifications');
  onTestFinished(() => switchMapping(functionName, true));
  await switchMapping(functionName, false);
  live.refresh();
  await eventually(async () => {
    expect(broken()).toMatchObject([
      {
        state: 'broken',
        what: expect.stringContaining('notifications receives no messages'),
        commands: [
          expect.stringMatching(/^aws cloudtrail lookup-events /),
          expect.stringMatching(/^aws lambda update-event-source-mapping --uuid \S+ --enabled/),
        ],
      },
    ]);
  });
  expect(flow().status?.state).toBe('broken');
  await switchMapping(functionName, true);
  live.refresh();
  await eventually(async () => expect(broken()).toEqual([]));
});
