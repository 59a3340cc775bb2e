import type { DynamoDBRecord } from 'aws-lambda';
import { beforeAll, describe, expect, test } from 'vitest';
import { PoisonMessage } from '../../lambdas/runtime/base/errors.ts';
import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { type Handler, leased, transactional } from '../../lambdas/runtime/consume/handler.ts';
import { createRelayStream } from '../../lambdas/runtime/relay/relay-stream.ts';
import { createRelaySweep } from '../../lambdas/runtime/relay/relay-sweep.ts';
import { createConsumer } from '../../lambdas/runtime/sources/sqs/consumer.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import { lambdaContext } from '../../testing/index.ts';
import { consumerConfig, relayConfig, rig, runThrough, ThingHappened } from '../support/runtime-rig.ts';
import { type DeployedPart, deployedParts } from './access/deployed-parts.ts';
import { type Ask, askOf, type Principal, rolesOf } from './access/permissions.ts';
import { type RecordedCalls, recordCalls } from './access/recorded-calls.ts';
import { mailroomTable } from './access/role-table.ts';
import { synthStage } from './synth.ts';

/**
 * The other side of the role table: no engine on a laptop enforces IAM, so what the runtime really calls, on its happy paths
 * and the others, is held against what the deployed role may do.
 */
let parts: DeployedPart[];
let ask: Ask;

beforeAll(() => {
  parts = deployedParts(synthStage('prod').app);
  ask = askOf(parts);
});

type Parts = ReturnType<typeof rig>;

/** How a bus refuses an entry. */
interface Refusal {
  readonly code: string;
  readonly message: string;
}

/** A new outbox row: the only records that the mapping hands over. */
const isInsert = ({ eventName, dynamodb }: DynamoDBRecord) =>
  eventName === 'INSERT' && dynamodb?.Keys?.PK?.S?.startsWith('OUTBOX#');

function setUp(options: Parameters<typeof rig>[0] = {}) {
  const made = rig(options);
  const recorded = recordCalls(made.memory);
  return { ...made, recorded, table: recorded.table };
}

/** The calls that the role may not make. */
async function forbidden(roleName: string, recorded: RecordedCalls): Promise<string[]> {
  const role = rolesOf(parts).find(({ name }) => name === roleName) as Principal;
  const resource = mailroomTable(parts).arn;
  const judged = await Promise.all(
    recorded.calls().map(async ({ action, key }) => {
      const verdict = await ask(role, { action, resource, key });
      return verdict === 'allow' ? [] : [`${action} ${key}: ${verdict}`];
    }),
  );
  return judged.flat();
}

/** What was called, by action and kind of key. */
function kinds(recorded: RecordedCalls): string[] {
  const all = recorded
    .calls()
    .map(({ action, key }) => `${action.replace('dynamodb:', '')} ${key?.split('#')[0] ?? 'the table'}`);
  return [...new Set(all)].sort();
}

describe("the runtime's calls match the permissions of its role:", () => {
  test('a producer', async () => {
    const { recorded, table, clock, happened } = setUp();
    const outbox = createOutbox({ config: consumerConfig, table, clock });
    await outbox.commit({
      writes: [
        { Put: { Item: { PK: 'ORDER#1', SK: 'ORDER' }, ConditionExpression: 'attribute_not_exists(PK)' } },
      ],
      events: [happened(1)],
    });
    expect(kinds(recorded)).toEqual(['PutItem ORDER', 'PutItem OUTBOX']);
    expect(await forbidden('Orders/ApiRole', recorded)).toEqual([]);
  });

  test('the stream relay: fresh and late records, refused events, one that is DEAD when it is marked', async () => {
    const bus = { onPublish: (): Refusal | undefined => undefined };
    const made = setUp({ bus: { failEntry: () => bus.onPublish() } });
    const { recorded, clock, telemetry, table, memory, outbox, happened } = made;
    const handle = createRelayStream({ config: relayConfig, table, bus: made.bus, clock, telemetry });
    const publishNewest = () =>
      runThrough(clock, handle({ Records: made.streamEvent().Records.filter(isInsert).slice(-1) }));

    await outbox.commit({ events: [happened(1)] });
    await publishNewest();
    await outbox.commit({ events: [happened(2)] });
    await clock.advance(20_000);
    await publishNewest();
    bus.onPublish = () => ({ code: 'MalformedDetail', message: 'no' });
    await outbox.commit({ events: [happened(3)] });
    await publishNewest();
    bus.onPublish = () => {
      const row = made.rows().find(({ status }) => status === 'PENDING');
      const key = { PK: row?.PK ?? '', SK: row?.SK ?? '' };
      void memory.updateEach([{ key, set: { status: 'DEAD' }, when: { status: 'PENDING' } }]);
      return undefined;
    };
    await outbox.commit({ events: [happened(4)] });
    await publishNewest();
    expect(made.publishedIds()).toHaveLength(3);
    expect(kinds(recorded)).toEqual([
      'DeleteItem DEAD',
      'PartiQLUpdate OUTBOX',
      'PutItem DEAD',
      'UpdateItem OUTBOX',
    ]);
    expect(await forbidden('Mailroom/MailroomRelayStreamRole', recorded)).toEqual([]);
  });

  test('the sweep: an event that is published again', async () => {
    const made = setUp();
    const { recorded, table, bus, clock, telemetry, outbox, happened } = made;
    const [event] = await outbox.commit({ events: [happened(1)] });
    const eventId = event?.eventId ?? '';
    const sweep = createRelaySweep({ config: relayConfig, table: made.memory, bus, clock, telemetry });
    await clock.advance(3 * MINUTE_MS);
    await runThrough(clock, sweep({}, lambdaContext({ clock })));
    const before = recorded.calls().length;
    const again = createRelaySweep({ config: relayConfig, table, bus, clock, telemetry });
    await again({ republish: eventId }, lambdaContext({ clock }));
    expect(made.publishedIds()).toEqual([eventId, eventId]);
    const calls = recorded.calls().slice(before);
    expect(calls.map(({ action }) => action)).toEqual(['dynamodb:Query']);
    expect(await forbidden('Mailroom/MailroomRelaySweepRole', { ...recorded, calls: () => calls })).toEqual(
      [],
    );
  });

  test('the sweep: its state, minutes that stay unsettled, refused events', async () => {
    const made = setUp({
      bus: {
        failEntry: (entry) =>
          entry.detail.includes('"n":13') ? { code: 'MalformedDetail', message: 'no' } : undefined,
      },
    });
    const { recorded, clock, bus, telemetry, table, memory, outbox, happened } = made;
    const sweep = createRelaySweep({ config: relayConfig, table, bus, clock, telemetry });
    const pass = () => runThrough(clock, sweep({}, lambdaContext({ clock })));
    await outbox.commit({ events: [happened(1), happened(13)] });
    await outbox.commit({ events: [happened(2)] });
    const held = made.rows().at(-1);
    await memory.updateEach([
      {
        key: { PK: held?.PK ?? '', SK: held?.SK ?? '' },
        set: { leaseUntil: clock.now() + 4 * MINUTE_MS },
        when: { status: 'PENDING' },
      },
    ]);
    for (let minute = 0; minute < 9; minute += 1) {
      await clock.advance(MINUTE_MS);
      await pass();
    }
    expect(made.publishedIds()).toHaveLength(2);
    expect(kinds(recorded)).toEqual([
      'DeleteItem SWEEP',
      'DescribeTable the table',
      'GetItem SWEEP',
      'PartiQLUpdate OUTBOX',
      'PutItem DEAD',
      'PutItem SWEEP',
      'Query DEAD',
      'Query OUTBOX',
      'Query SWEEP',
      'UpdateItem OUTBOX',
      'UpdateItem SWEEP',
    ]);
    expect(await forbidden('Mailroom/MailroomRelaySweepRole', recorded)).toEqual([]);
  });
});

describe("a consumer's calls match the permissions of its role:", () => {
  const payment = { Put: { Item: { PK: 'PAYMENT#1', SK: 'PAYMENT' } } };

  async function consume(
    made: Parts & { recorded: RecordedCalls },
    handler: Handler,
    rounds = 12,
  ): Promise<void> {
    const { queue, clock, telemetry, table } = made;
    const config = { ...consumerConfig, consumer: 'payments' };
    const handle = createConsumer({ config, table, queue, handlers: [handler], clock, telemetry });
    for (let round = 0; round < rounds && queue.messages().length > 0; round += 1) {
      await runThrough(clock, queue.deliver(handle, 10, lambdaContext({ clock })));
      await clock.advance(15 * MINUTE_MS);
    }
  }

  async function send(made: Parts): Promise<void> {
    const [event] = await made.outbox.commit({ events: [made.happened(1)] });
    const row = made.rows().find(({ status }) => status === 'PENDING');
    expect(event).toBeDefined();
    made.queue.send({
      id: 'e',
      'detail-type': 'ThingHappened',
      source: 'things',
      detail: JSON.parse(row?.envelope ?? '{}'),
    });
  }

  test('an effect that fails once, and a commit with rows and events', async () => {
    const made = setUp();
    let runs = 0;
    await send(made);
    await consume(
      made,
      leased(ThingHappened, async (_event, ctx) => {
        await ctx.once('charge', async () => {
          runs += 1;
          if (runs === 1) throw new Error('The bank is closed');
          return { charged: true };
        });
        await ctx.commit({ writes: [payment], events: [made.happened(2)] });
      }),
    );
    expect(made.queue.messages()).toEqual([]);
    expect(made.queue.deadLetters()).toEqual([]);
    expect(kinds(made.recorded)).toEqual([
      'DeleteItem FAILED',
      'GetItem INBOX',
      'PutItem FAILED',
      'PutItem OUTBOX',
      'PutItem PAYMENT',
      'UpdateItem INBOX',
    ]);
    expect(await forbidden('Payments/PaymentsFunctionRole', made.recorded)).toEqual([]);
  });

  test('poison, and a redrive that succeeds', async () => {
    const made = setUp();
    let poison = true;
    const handler = leased(ThingHappened, async () => {
      if (poison) throw new PoisonMessage('No such customer');
    });
    await send(made);
    await consume(made, handler);
    expect(made.queue.deadLetters()).toHaveLength(1);
    poison = false;
    made.queue.redrive();
    await consume(made, handler);
    expect(made.queue.messages()).toEqual([]);
    expect(kinds(made.recorded)).toEqual(
      expect.arrayContaining(['PutItem REJECTED', 'DeleteItem REJECTED', 'UpdateItem INBOX']),
    );
    expect(await forbidden('Payments/PaymentsFunctionRole', made.recorded)).toEqual([]);
  });

  test('a transactional handler, and a delivery that comes twice', async () => {
    const made = setUp();
    const handler = transactional(ThingHappened, async () => ({
      writes: [payment],
      events: [made.happened(2)],
    }));
    await send(made);
    made.queue.send(made.queue.messages()[0]?.body);
    await consume(made, handler);
    expect(made.queue.messages()).toEqual([]);
    expect(kinds(made.recorded)).toEqual(
      expect.arrayContaining(['PutItem OUTBOX', 'PutItem PAYMENT', 'UpdateItem INBOX']),
    );
    expect(await forbidden('Payments/PaymentsFunctionRole', made.recorded)).toEqual([]);
  });

  test('the calls of one consumer do not match the permissions of another', async () => {
    const made = setUp();
    await send(made);
    await consume(
      made,
      transactional(ThingHappened, async () => ({ writes: [payment] })),
    );
    expect(await forbidden('Inventory/InventoryFunctionRole', made.recorded)).toEqual(
      expect.arrayContaining([
        'dynamodb:PutItem PAYMENT#1: -',
        expect.stringMatching(/UpdateItem INBOX#payments#.*: -/),
      ]),
    );
  });
});
