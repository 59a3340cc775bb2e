import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { resentEventId } from '../../../cli/changes/resend/resend-plan.ts';
import { eventBridgeBus } from '../../../lambdas/runtime/bus/eventbridge-bus.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { HEARTBEAT } from '../../../lambdas/runtime/events/heartbeat-event.ts';
import type { MailroomEntry } from '../../../lambdas/runtime/operations/directory.ts';
import { createHeartbeatHandler } from '../../../lambdas/runtime/operations/heartbeat/heartbeat-handler.ts';
import { createInboxProcessor } from '../../../lambdas/runtime/sources/inbox-processor.ts';
import { discardDead, requeueDead } from '../../../lambdas/runtime/store/dynamo/outbox-operator.ts';
import { listUnsettled, storeWalk } from '../../../lambdas/runtime/store/dynamo/unsettled-minutes.ts';
import { eventIdShard } from '../../../lambdas/runtime/store/event-id.ts';
import { HEARTBEAT_STATE_KEY } from '../../../lambdas/runtime/store/keys.ts';
import { recordOperation } from '../../../lambdas/runtime/store/operation-record.ts';
import { SCHEMA } from '../../../lambdas/runtime/store/row-schema.ts';
import { memoryTelemetry, producerConfig } from '../../../testing/index.ts';
import { STUB_CONFIGURATION, stubHandler } from '../../support/stub-client.ts';
import { bytesOf, consumer, EVENT_ID, NOW, OrderPlaced, shapeRig } from './stored-shape-rig.ts';

const REFUSED = { code: 'InvalidArgument', message: 'Parameter Detail is not valid' };
const note = { by: 'arn:aws:sts::111122223333:assumed-role/on-call/ada', reason: 'sent by hand' };

async function written() {
  const rig = shapeRig();
  await rig.commit();
  return rig;
}

async function scheduled() {
  const rig = shapeRig();
  await rig.schedule();
  return rig;
}

async function dead() {
  const rig = shapeRig(REFUSED);
  await rig.commit();
  await rig.sweep();
  return rig;
}

async function failed() {
  const rig = shapeRig({ code: 'SomethingNew', message: 'an unknown failure' });
  await rig.commit();
  await rig.sweep();
  return rig;
}

async function requeued() {
  const rig = await dead();
  await requeueDead(rig, EVENT_ID, note);
  return rig;
}

/** Each item of the write and relay stages that docs/stored-items.md shows, by its heading there. */
export const outboxScenes: Readonly<Record<string, () => Promise<unknown>>> = {
  'The envelope': async () => {
    const [envelope] = await shapeRig().commit();
    return envelope;
  },
  'The EventBridge entry': async () => {
    const rig = await written();
    await rig.publish();
    const stub = stubHandler(() => ({ status: 200, body: { Entries: [{ EventId: 'e' }] } }));
    const client = new EventBridgeClient({ ...STUB_CONFIGURATION, requestHandler: stub });
    await eventBridgeBus({ client, busName: 'shop' }).put(rig.bus.calls()[0]?.entries ?? [], 5_000);
    return (stub.requests[0] as { Entries: unknown[] }).Entries[0];
  },
  'Outbox row: PENDING': async () => (await written()).item('OUTBOX#'),
  'Outbox row: PENDING, scheduled': async () => (await scheduled()).item('OUTBOX#'),
  'Outbox row: CANCELLED': async () => {
    const rig = await scheduled();
    await rig.outbox.cancel(EVENT_ID);
    return rig.item('OUTBOX#');
  },
  'Outbox row: PENDING, after a failure': async () => (await failed()).item('OUTBOX#'),
  'Outbox row: PUBLISHED': async () => {
    const rig = await written();
    await rig.publish();
    return rig.item('OUTBOX#');
  },
  'Outbox row: DEAD': async () => (await dead()).item('OUTBOX#'),
  'DEAD pointer': async () => (await dead()).item('DEAD#'),
  'Outbox row: PENDING, requeued': async () => (await requeued()).item('OUTBOX#'),
  'Outbox row: DISCARDED': async () => {
    const rig = await dead();
    await discardDead(rig, EVENT_ID, note);
    return rig.item('OUTBOX#');
  },
  'Key of a unique event': async () => {
    const rig = shapeRig();
    await rig.commitUnique();
    return rig.item('OUTBOX#UNIQUE#');
  },
  'Unsettled pointer': async () => (await requeued()).item('SWEEP#'),
  'Unsettled pointer: half read': async () => {
    const rig = await requeued();
    const [pointer] = await listUnsettled(rig.table, eventIdShard(EVENT_ID));
    if (pointer === undefined) throw new Error('There is no pointer');
    const after = `EVENT#${EVENT_ID}`;
    const left = { rows: 1, undeclared: 0, oldest: NOW, leaseUntil: NOW + 30_000 };
    await storeWalk(rig.table, pointer, { after, left }, rig.random);
    return rig.item('SWEEP#');
  },
  'Sweep state': async () => (await dead()).item('SWEEP', 'STATE'),
  'Heartbeat state': async () => {
    const rig = shapeRig();
    const latest = '01a1fba1-b078-7a41-9c37-3f5d2b8e1103';
    await rig.table.write({ Put: { Item: { ...HEARTBEAT_STATE_KEY, schema: SCHEMA, latest } } });
    const everyMs = 300_000;
    const config = { ...producerConfig({ service: HEARTBEAT.source }), everyMs };
    const directory = { mailroom: {} as MailroomEntry, consumers: [] };
    const random = bytesOf(EVENT_ID);
    await createHeartbeatHandler({
      ...rig,
      config,
      random,
      telemetry: memoryTelemetry(),
      directory: async () => directory,
    })();
    return rig.item('MAILROOM#');
  },
  'Consumer of another source': async () => {
    const rig = shapeRig();
    const handler = leased(OrderPlaced, async () => {});
    createInboxProcessor({ ...rig, config: consumer, telemetry: memoryTelemetry() }).handles(
      handler,
      'Kafka',
    );
    await rig.clock.advance(1);
    return rig.item('MAILROOM#');
  },
  Operation: async () => {
    const rig = shapeRig();
    const what = { command: 'messages resolve', subject: `payments ${EVENT_ID}` };
    await recordOperation(rig, { ...note, ...what, reason: 'charged by phone' });
    return rig.item('OPERATIONS#');
  },
  'Operation: dlq resend': async () => {
    const rig = shapeRig();
    const source = 'consumer:payments';
    const newEventId = resentEventId('payments', EVENT_ID, { orderId: '42', totalCents: 4300 });
    await recordOperation(rig, {
      ...{ ...note, reason: 'the price was wrong', command: 'dlq resend' },
      subject: `${source}: ${EVENT_ID} as ${newEventId}`,
      ...{ source, consumer: 'payments', eventId: EVENT_ID, newEventId },
    });
    return rig.item('OPERATIONS#');
  },
};
