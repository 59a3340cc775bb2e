import type { SQSEvent } from 'aws-lambda';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { z } from 'zod/mini';
import { DAY_MS, MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { leased, transactional } from '../../lambdas/runtime/consume/handler.ts';
import { type ExternalEvent, externalEvent } from '../../lambdas/runtime/events/external-event.ts';
import { createConsumer } from '../../lambdas/runtime/sources/sqs/consumer.ts';
import { externalEventId } from '../../lambdas/runtime/store/external-id.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import { lambdaContext, memoryTable, memoryTelemetry } from '../../testing/index.ts';
import { consumerConfig } from '../support/runtime-rig.ts';
import { eagerClock, settled } from './support/eager-clock.ts';
import { flakyTable, tableMoods } from './support/flaky-table.ts';
import { runs, seededBytes } from './support/runs.ts';

const Charged = externalEvent({
  source: 'stripe',
  type: 'charge',
  id: ['account', 'id'],
  schema: z.object({ account: z.string(), id: z.union([z.string(), z.number()]) }),
});

/** Identities that are easily taken for each other. */
const IDS = [
  { account: 'a', id: '1' },
  { account: 'a', id: 1 },
  { account: 'a', id: '1","' },
  { account: 'a","1', id: '1' },
  { account: 'é', id: '\u0065\u0301' },
  { account: '\u0065\u0301', id: 'é' },
];

type Data = (typeof IDS)[number] & { readonly noise?: unknown };

/** The shapes in which a sender, EventBridge, a topic, or one behind the other deliver an event. */
const bridged = (detail: Data, n: number) => ({
  id: `bridge-${n}`,
  source: Charged.source,
  'detail-type': Charged.type,
  time: '2026-01-01T00:00:00Z',
  detail,
});
const notified = (content: unknown) => ({
  Type: 'Notification',
  TopicArn: 'arn:topic',
  Message: JSON.stringify(content),
});
const SHAPES = [
  (data: Data) => data,
  (data: Data, n: number) => bridged(data, n),
  (data: Data) => notified(data),
  (data: Data, n: number) => notified(bridged(data, n)),
];

const delivery = fc.record({
  data: fc.constantFrom(...IDS),
  shape: fc.constantFrom(...SHAPES),
  fails: fc.boolean(),
});
const batches = fc.array(fc.array(delivery, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 6 });

const keyOf = (eventId: string) => ({ PK: `EFFECTS#${eventId}`, SK: 'EFFECTS' });

it.each([
  ['leased', leased],
  ['transactional', transactional],
] as const)(
  'an external event takes effect once for a %s handler, however often and in whatever shape it is delivered',
  async (_, kind) => {
    await fc.assert(
      fc.asyncProperty(batches, tableMoods, fc.nat(), async (sent, moods, seed) => {
        const clock = eagerClock();
        const memory = memoryTable({ clock });
        const table = flakyTable(memory, clock, moods);
        const changes = ({ eventId }: ExternalEvent) => ({
          writes: [
            {
              Update: {
                Key: keyOf(eventId),
                UpdateExpression: 'ADD n :one',
                ExpressionAttributeValues: { ':one': 1 },
              },
            },
          ],
        });
        let failing = new Set<string>();
        const fail = ({ externalId }: ExternalEvent) => {
          if (failing.has(externalId)) throw new Error('its provider is down');
        };
        const handler =
          kind === leased
            ? leased(Charged, async (event, ctx) => {
                await ctx.commit(changes(event));
                fail(event); // after its effect
              })
            : transactional(Charged, async (event) => {
                fail(event);
                return changes(event);
              });
        const consume = createConsumer({
          config: { ...consumerConfig, maxAttempts: 100 },
          table,
          queue: { changeVisibility: async () => {} },
          clock,
          random: seededBytes(seed),
          handlers: [handler],
          telemetry: memoryTelemetry(),
        });
        let messages = 0;
        const deliver = async (batch: (typeof sent)[number], receives: number) => {
          failing = new Set(
            batch.filter(({ fails }) => fails).map(({ data }) => JSON.stringify(Object.values(data))),
          );
          const Records = batch.map(({ data, shape }) => {
            messages += 1;
            return {
              messageId: `m-${messages}`,
              receiptHandle: `r-${messages}`,
              body: JSON.stringify(shape({ ...data, noise: messages }, messages)),
              attributes: { ApproximateReceiveCount: `${receives}`, SentTimestamp: `${clock.now()}` },
            };
          });
          const event = { Records } as unknown as SQSEvent;
          await settled(consume(event, lambdaContext({ clock })));
        };
        for (const [i, batch] of sent.entries()) await deliver(batch, 1 + (i % 2));
        // Its sender and SQS repeat every event until it is processed, and twice on other days.
        const last = new Map(sent.flat().map((one) => [one.data, { ...one, fails: false }]));
        const isProcessed = ({ account, id }: Data) =>
          memory.item(inboxKey(consumerConfig.consumer, externalEventId(Charged, [account, id])))?.status ===
          'PROCESSED';
        const repeat = async (afterMs: number) => {
          clock.moveTo(clock.now() + afterMs);
          for (const one of last.values()) await deliver([one], 2);
        };
        for (let round = 0; round < 70 && ![...last.keys()].every(isProcessed); round += 1)
          await repeat(15 * MINUTE_MS);
        await repeat(DAY_MS);
        await repeat(14 * DAY_MS);
        const effects = memory.items().filter(({ PK }) => String(PK).startsWith('EFFECTS#'));
        expect(effects.map(({ n }) => n)).toEqual([...last].map(() => 1));
      }),
      runs(25),
    );
  },
);
