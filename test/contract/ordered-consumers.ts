import { type Clock, systemClock } from '../../lambdas/runtime/base/clock.ts';
import { PoisonMessage } from '../../lambdas/runtime/base/errors.ts';
import { strict } from '../../lambdas/runtime/base/order.ts';
import type { DatabaseConsumerDeps } from '../../lambdas/runtime/database/database-consumer.ts';
import {
  type DatabaseHandler,
  type DatabaseHandlerOptions,
  type DatabaseHandlers,
  databaseHandlers,
} from '../../lambdas/runtime/database/database-handlers.ts';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import type { InboxChanges } from '../../lambdas/runtime/inbox/inbox-operator.ts';
import type { ConsumerHandler } from '../../lambdas/runtime/sources/sqs/consumer.ts';
import { lastKey } from '../../lambdas/runtime/store/keys.ts';
import type { LastRaise, LastSequence } from '../../lambdas/runtime/store/last-sequence.ts';
import type { OrderSeed } from '../../lambdas/runtime/store/order-seed.ts';
import type { Database, Sql } from '../../lambdas/runtime/store/sql/database.ts';
import { lambdaContext, memoryTelemetry } from '../../testing/index.ts';
import { newEventId } from '../postgres/consumer-parts.ts';
import { LEASE_MS } from '../postgres/inbox-rig.ts';
import { consumerConfig, ThingHappened } from '../support/runtime-rig.ts';

/** The numbered event of the consumer `worker`. */
export const Counted = defineEvent({
  source: 'things',
  type: 'Counted',
  version: 1,
  aggregateType: 'Thing',
  schema: ThingHappened.schema,
  sequence: true,
});

/** Published by its handlers. */
export const happened = ThingHappened.create({ aggregateId: 'thing-2', data: { n: 2 } });

/** The aggregate of its events. */
export const aggregate = { source: 'things', aggregateType: 'Thing', aggregateId: 'thing-1' } as const;

/** The key of the aggregate at the consumer. */
export const KEY = lastKey({ consumer: 'worker', group: 'strict', ...aggregate }).PK;

/** The `rejected` function of a handler. */
export type RejectedOptions<Tx> = DatabaseHandlerOptions<typeof Counted, Tx>;

/** A kind of database, whose rows of the test are gone before each test. */
export interface OrderedDatabase<Tx> {
  /** As the login of the consumer reaches it. */
  readonly database: () => Database<Tx>;
  /** As the login of an operator reaches it. */
  readonly operated: () => Database<Tx>;
  readonly outbox: DatabaseConsumerDeps<Tx>['outbox'];
  readonly createConsumer: (deps: DatabaseConsumerDeps<Tx>) => ConsumerHandler;
  readonly changesIn: (database: Database<Tx>, clock: Clock) => InboxChanges;
  readonly seedOrder: (database: Database<Tx>, tx: Tx, seed: OrderSeed) => Promise<void>;
  readonly raiseLast: (sql: Sql, raise: LastRaise) => Promise<boolean>;
  readonly readLastSequence: (sql: Sql, key: string) => Promise<LastSequence>;
  /** Writes a row of the consumer's own. */
  readonly pay: (tx: Tx, note: string) => Promise<unknown>;
  /** The rows of a query. */
  readonly rows: (text: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** The table of {@link OrderedDatabase.pay}. */
  readonly payments: string;
  /** A `rejected` function that misuses its transaction, and the error that refuses it. */
  readonly spoils: readonly [what: string, run: (tx: Tx) => Promise<unknown>, answer: object];
}

/** Creates strict consumers of {@link Counted}, and reads what they did. */
export function orderedConsumers<Tx>(tested: OrderedDatabase<Tx>) {
  const { pay } = tested;
  /** A strict consumer. @param database - @default that of its login */
  function counting(
    handlers: (make: DatabaseHandlers<Tx>) => readonly DatabaseHandler<Tx>[],
    database = tested.database(),
    clock: Clock = systemClock,
  ) {
    const telemetry = memoryTelemetry();
    const handle = tested.createConsumer({
      config: { ...consumerConfig, leaseMs: LEASE_MS, order: strict(), maxReceives: 5 },
      database,
      clock,
      outbox: tested.outbox,
      queue: { changeVisibility: async () => {} },
      handlers: handlers(databaseHandlers<Tx>()),
      telemetry,
    });
    const invoke = (event: object) =>
      handle(event as never, lambdaContext({ clock: { now: Date.now }, timeoutMs: LEASE_MS } as never));
    const bodyOf = (sequence: number, eventId: string) => {
      const { source, type, version } = Counted;
      const known = { eventId, type, version, aggregateType: 'Thing', aggregateId: 'thing-1', sequence };
      const detail = { ...known, correlationId: 'chain', occurredAt: Date.now(), data: { n: sequence } };
      return JSON.stringify({ source, 'detail-type': type, detail });
    };
    return {
      telemetry,
      /** @returns the code of its failure, if it failed */
      deliver: async (sequence: number, eventId = newEventId(), receives = 1, messageId = 'first') => {
        const attributes = { ApproximateReceiveCount: String(receives), SentTimestamp: String(Date.now()) };
        const body = bodyOf(sequence, eventId);
        const { batchItemFailures } = await invoke({
          Records: [{ messageId, receiptHandle: messageId, body, attributes }],
        });
        return batchItemFailures.map(
          (failure) => (Reflect.get(failure, 'error') as { code?: string }).code ?? 'none',
        );
      },
      reject: async (sequence: number, eventId: string) => {
        const request = { by: 'ada', reason: 'the customer left', body: bodyOf(sequence, eventId) };
        return Reflect.get(await invoke({ mailroomReject: request }), 'settled');
      },
    };
  }
  /** A handler that pays for each number but 13. */
  const booking = (make: DatabaseHandlers<Tx>, options?: RejectedOptions<Tx>) =>
    make.transactional(
      Counted,
      async ({ data }, { tx }) => {
        if (data.n === 13) throw new PoisonMessage('unlucky');
        await pay(tx, String(data.n));
        return { events: [happened] };
      },
      options,
    );
  return {
    counting,
    booking,
    /** The number of the aggregate. */
    last: () => tested.readLastSequence(tested.database(), KEY),
    /** Begins its sequence. */
    begin: (sequence: number) =>
      tested.database().transaction(async (tx) => {
        const seen = { last: 0, exists: false };
        await tested.raiseLast(tested.database().in(tx), { key: KEY, sequence, seen });
      }),
    notes: async () =>
      (await tested.rows(`SELECT note FROM ${tested.payments} ORDER BY id`)).map(({ note }) => note),
    statuses: async () =>
      (await tested.rows('SELECT status FROM mailroom.inbox')).map(({ status }) => status),
    eventCount: async () => (await tested.rows('SELECT 1 FROM mailroom.event')).length,
    logged: async () =>
      (await tested.rows('SELECT command FROM mailroom.operation')).map(({ command }) => command),
  };
}
