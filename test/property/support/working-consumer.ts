import type { SQSEvent } from 'aws-lambda';
import { z } from 'zod/mini';
import { AlreadyProcessed, PoisonMessage } from '../../../lambdas/runtime/base/errors.ts';
import { leased, transactional } from '../../../lambdas/runtime/consume/handler.ts';
import { defineEvent, type Envelope } from '../../../lambdas/runtime/events/event.ts';
import { createConsumer } from '../../../lambdas/runtime/sources/sqs/consumer.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import type { OutboxRow } from '../../../lambdas/runtime/store/outbox-row.ts';
import { lambdaContext, memoryTable, memoryTelemetry } from '../../../testing/index.ts';
import { consumerConfig } from '../../support/runtime-rig.ts';
import { batchOf, DEEDS, type Deed, type Spec } from './deliveries.ts';
import { eagerClock, settled } from './eager-clock.ts';
import { seededBytes } from './runs.ts';

const payload = {
  source: consumerConfig.service,
  version: 2,
  aggregateType: 'Thing',
  schema: z.object({ deed: z.enum(DEEDS) }),
};
/** Handled under a lease. */
const Led = defineEvent({ type: 'Led', ...payload });
/** Handled in one transaction. */
const Swift = defineEvent({ type: 'Swift', ...payload });

/**
 * A consumer whose handlers do what their event says, a batch for it, and what becomes of both.
 *
 * @param thrown - what a handler throws whose event says so
 */
export function workingConsumer(specs: readonly Spec[], thrown: unknown, seed: number) {
  const clock = eagerClock();
  const table = memoryTable({ clock });
  const deps = { config: consumerConfig, table, clock, random: seededBytes(seed) };
  const { handed, rows } = batchOf(specs, clock.now());
  const work = workOf(thrown);
  const queue = {
    changeVisibility: async (_receiptHandle: string, seconds: number) => {
      if (!Number.isInteger(seconds) || seconds < 0 || seconds > 43_200) work.refusals.push(seconds);
    },
  };
  const handle = createConsumer({ ...deps, queue, handlers: work.handlers, telemetry: memoryTelemetry() });

  function emitted(eventId: string): OutboxRow[] {
    const items = table.items() as unknown as OutboxRow[];
    return items.filter(({ PK, envelope }) => {
      return PK.startsWith('OUTBOX#') && (JSON.parse(envelope) as Envelope).causationId === eventId;
    });
  }

  return {
    handed,
    table,
    ran: work.ran,
    /** Visibility timeouts that SQS would refuse. */
    refusals: work.refusals,
    /** The outbox rows of the events that this one caused. */
    emitted,
    /** How often the work of an event was done: its row written, its effect run, its event emitted. */
    done: (eventId: string) =>
      Number(table.item(workKey(eventId))?.n ?? 0) +
      work.effects.filter((id) => id === eventId).length +
      emitted(eventId).length,
    statusOf: (eventId: string) => table.item(inboxKey(consumerConfig.consumer, eventId))?.status,
    /** Puts the rows that precede the batch, hands it over and tells the message ids that failed. @param event - @default the batch */
    deliver: async (event: unknown = { Records: handed.map(({ record }) => record) }): Promise<string[]> => {
      for (const row of rows) await table.write({ Put: { Item: row } });
      const answer = await settled(handle(structuredClone(event) as SQSEvent, lambdaContext({ clock })));
      return answer.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier);
    },
  };
}

/** The handlers, and what they did. */
function workOf(thrown: unknown) {
  const ran: string[] = [];
  const effects: string[] = [];

  function fail(deed: Deed): void {
    if (deed === 'throw') throw thrown;
    if (deed === 'poison') throw new PoisonMessage('never');
    if (deed === 'already') throw new AlreadyProcessed('by another worker');
  }
  function commitOf(deed: Deed, eventId: string) {
    return {
      writes: deed === 'commit' ? [countOne(eventId)] : [],
      events: deed === 'emit' ? [Led.create({ aggregateId: eventId, data: { deed: 'return' } })] : [],
    };
  }
  const handlers = [
    leased(Led, async ({ eventId, data: { deed } }, ctx) => {
      ran.push(eventId);
      fail(deed);
      if (deed === 'effect') await ctx.once('effect', async () => effects.push(eventId));
      if (deed === 'commit' || deed === 'emit') await ctx.commit(commitOf(deed, eventId));
    }),
    transactional(Swift, async ({ eventId, data: { deed } }) => {
      ran.push(eventId);
      fail(deed);
      return commitOf(deed, eventId);
    }),
  ];
  return { handlers, ran, effects, refusals: [] as number[] };
}

function workKey(eventId: string) {
  return { PK: `WORK#${eventId}`, SK: 'WORK' };
}

function countOne(eventId: string) {
  return {
    Update: {
      Key: workKey(eventId),
      UpdateExpression: 'ADD n :one',
      ExpressionAttributeValues: { ':one': 1 },
    },
  };
}
