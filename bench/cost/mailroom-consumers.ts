import { z } from 'zod';
import { bridge, type SqsSender, sqsTarget } from '../../lambdas/runtime/bridge.ts';
import {
  type Clock,
  createConsumer,
  defineEvent,
  type EventOrder,
  type Handler,
  leased,
  type Table,
  type Telemetry,
  transactional,
  transactionalBatch,
} from '../../lambdas/runtime/index.ts';
import type { Payloads, RandomBytes } from '../../lambdas/runtime/internals.ts';
import { inboxHistoryKey } from '../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import { consumerConfig, memoryQueue } from '../../testing/index.ts';
import { bookInvocation, bookSend, requestsOf } from '../alternatives/queue-delivery.ts';
import {
  consumerNames,
  EVENT,
  handledWrite,
  handlerFaults,
  SOURCE,
  type Workload,
} from '../alternatives/workload.ts';
import type { MeteredAws } from '../aws/metered-aws.ts';
import { TABLE } from './sweep-minute.ts';

/** Default settings of a consumer, as the constructs pass them; `maxReceives` is read if its order is strict. */
const CONSUMER_CONFIG = consumerConfig({
  service: SOURCE,
  tableName: TABLE,
  queueUrl: 'queue',
  maxReceives: 105,
});

const schema = z.object({ orderId: z.string(), note: z.string() });
/** The event of every run. */
export const OrderPlaced = defineEvent({ ...EVENT, schema });
/** The same, numbered for ordered consumers. */
export const NumberedOrderPlaced = defineEvent({ ...EVENT, schema, sequence: true });

/** Less than the events of a batch: all but the first of one key wait once. */
const LIMIT_PER_SECOND = 0.1;

/** The differences between the consumers of the runs. */
export interface ConsumerVariant {
  /**
   * The handler returns its write; commits it under its lease; or also makes one external call with `ctx.once`. A batch handler returns a write for
   * each event, or one for the batch. A bridge sends the event to an SQS queue instead.
   */
  readonly handler: 'transactional' | 'batch' | 'batch, one row' | 'leased' | 'leased, once' | 'bridge';
  /** @default none: the events have no sequence */
  readonly order?: EventOrder;
  /** The limit of a leased handler: each event has its own key, with a rate or a concurrency, or all have one, so that they wait. @default none */
  readonly limit?: 'own key' | 'own place' | 'one key';
}

/** The dependencies of a consumer that are shared with the other parts of a run. */
interface SharedParts {
  readonly table: Table;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly telemetry: Telemetry;
  /** The objects of large payloads. */
  readonly payloads: Payloads | undefined;
}

/** Creates the consumers of a run, each with its queue. */
export function consumersOf(
  aws: MeteredAws,
  parts: SharedParts,
  workload: Workload,
  variant: ConsumerVariant,
) {
  const { clock, table } = parts;
  const faults = handlerFaults(workload);
  return consumerNames(workload).map((consumer) => {
    const queue = memoryQueue({ clock, visibilityTimeoutMs: CONSUMER_CONFIG.visibilityTimeoutMs });
    const handle = createConsumer({
      ...parts,
      table: ofRunningConsumer(table, consumer),
      config: { ...CONSUMER_CONFIG, consumer, order: variant.order },
      queue: {
        changeVisibility: (receiptHandle, seconds) => {
          aws.book('sqs', 'ChangeMessageVisibility', 1);
          return queue.changeVisibility(receiptHandle, seconds);
        },
      },
      handlers:
        variant.handler === 'bridge' ? bridgeOf(aws, variant) : [handlerOf(variant, consumer, faults)],
    });
    return {
      send: (body: string): void => {
        bookSend(aws, body);
        queue.send(body);
      },
      /** Delivers until the queue is empty. */
      drain: async (): Promise<void> => {
        for (let waiting = queue.messages(); waiting.length > 0; waiting = queue.messages()) {
          await clock.sleep(Math.min(...waiting.map(({ visibleAt }) => visibleAt)) - clock.now());
          let bodies: string[] = [];
          const { received, failed } = await queue.deliver(async (event, context) => {
            bodies = event.Records.map(({ body }) => body);
            return handle(event, context);
          });
          bookInvocation(aws, bodies, received - failed.length);
        }
      },
    };
  });
}

/** The table without the read unit of the inbox history, which is a cost of a function's start and not of an event. */
function ofRunningConsumer(table: Table, consumer: string): Table {
  const key = inboxHistoryKey(consumer);
  const retentions = [{ days: CONSUMER_CONFIG.inboxRetentionDays, since: 0 }];
  const history = { ...key, schema: SCHEMA, retentions, changedAt: 0 };
  return {
    ...table,
    get: async (asked, options) => (asked.PK === key.PK ? history : table.get(asked, options)),
  };
}

/** The handlers of a bridge to an SQS queue, whose requests are counted. */
function bridgeOf(aws: MeteredAws, { order }: ConsumerVariant): readonly Handler[] {
  const client: SqsSender = {
    sendMessageBatch: async ({ Entries }) => {
      aws.book('sqs', 'SendMessageBatch', requestsOf(Entries.map(({ MessageBody }) => MessageBody)));
      return { Successful: Entries.map(({ Id }) => ({ Id, MessageId: 'a'.repeat(36) })) };
    },
  };
  const to = sqsTarget({ client, queueUrl: `https://sqs/1/partner${order === undefined ? '' : '.fifo'}` });
  return bridge({ to, events: [order === undefined ? OrderPlaced : NumberedOrderPlaced] });
}

/** A handler that writes one row per event, and fails once first if the workload says so. */
function handlerOf(
  { handler, order, limit }: ConsumerVariant,
  consumer: string,
  mayFail: (consumer: string, order: string) => void,
): Handler {
  const definition = order === undefined ? OrderPlaced : NumberedOrderPlaced;
  const writes = (order: string) => [{ Update: handledWrite(consumer, order) }];
  if (handler === 'transactional') {
    return transactional(definition, async ({ data }) => {
      mayFail(consumer, data.orderId);
      return { writes: writes(data.orderId) };
    });
  }
  if (handler === 'batch' || handler === 'batch, one row') {
    return transactionalBatch(definition, async (events) => {
      const orders = events.map(({ data }) => data.orderId);
      for (const order of orders) mayFail(consumer, order);
      return { writes: handler === 'batch' ? orders.flatMap(writes) : writes('all') };
    });
  }
  const key = ({ data }: { readonly data: z.infer<typeof schema> }) =>
    limit === 'one key' ? 'merchant-1' : data.orderId;
  const most = limit === 'own place' ? { concurrency: 1 } : { perSecond: LIMIT_PER_SECOND };
  return leased(
    definition,
    async ({ data }, ctx) => {
      mayFail(consumer, data.orderId);
      if (handler === 'leased, once')
        await ctx.once('charge', async () => ({ chargeId: `charge-${data.orderId}` }));
      await ctx.commit({ writes: writes(data.orderId) });
    },
    { limit: limit && { key, ...most } },
  );
}
