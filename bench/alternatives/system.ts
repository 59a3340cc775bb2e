import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { PUT_EVENTS_ENTRIES_MAX } from '../../lambdas/runtime/bus/event-bus.ts';
import { readDelivered } from '../../lambdas/runtime/consume/message.ts';
import type { Envelope } from '../../lambdas/runtime/events/event.ts';
import { deliveredEvent } from '../../lambdas/runtime/operations/delivered-event.ts';
import type { MeteredAws } from '../aws/metered-aws.ts';
import type { TableShape } from '../aws/metered-table.ts';
import { chunks, deliver } from './queue-delivery.ts';
import {
  consumerNames,
  DOMAIN,
  handledWrite,
  handlerFaults,
  retriedOrders,
  START,
  type StoredEvent,
  type Workload,
} from './workload.ts';

/** A system that carries an event from a handler to consumers, each of which writes one domain row of under 1 KB for it. */
export interface System {
  /** E.g. `mailroom`. */
  readonly name: string;
  /** The guarantees for an event. */
  readonly promise: {
    /** Delivery of committed events. None of the systems publishes an event that was not committed. */
    readonly publishes: 'at least once' | 'at least once unless cancelled' | 'may lose';
    /** Application of a consumer's DynamoDB effect. */
    readonly effects: 'exactly once' | 'may duplicate';
  };
  readonly tables: readonly TableShape[];
  /**
   * Carries all events of a workload from the write to the last consumer, and ends when no work is left. Records its requests
   * under `write`, `relay` and `consume`, and under `standing` those that it would also make without events.
   */
  run(aws: MeteredAws, workload: Workload): Promise<void>;
  /**
   * Makes the requests of one minute in steady state that do not depend on events, such as scans and empty polls, recorded as
   * `standing`. Absent if there are none.
   *
   * @param aws - fresh tables, which it fills to their steady state
   * @returns the factor from the recorded requests to one minute: for a table too large for memory, a sample is read
   */
  standing?(aws: MeteredAws, load: SteadyLoad): Promise<number>;
}

/** A steady state. */
export interface SteadyLoad {
  readonly eventsPerSecond: number;
  readonly payloadBytes: number;
}

/** The shared context of both halves of a system in one run. */
export interface BenchRun {
  readonly aws: MeteredAws;
  readonly workload: Workload;
  readonly dynamodb: DynamoDBClient;
  readonly documents: DynamoDBDocumentClient;
  /** Publishes events, ten per call. @returns whether the bus accepted each event */
  publish(events: readonly StoredEvent[]): Promise<boolean[]>;
  /** A consumer's own code. @returns its write @throws if it fails */
  handle(consumer: string, event: Envelope): ReturnType<typeof handledWrite> & { readonly TableName: string };
}

/** The half that writes and publishes. */
export interface SendingHalf extends Pick<System, 'standing'> {
  readonly name: string;
  readonly publishes: System['promise']['publishes'];
  readonly tables: readonly TableShape[];
  /** Places an order. */
  write(run: BenchRun, index: number): Promise<void>;
  /** Publishes events that are written and not yet published; absent if `write` does it. */
  relay?(run: BenchRun): Promise<void>;
}

/** The half that consumes. */
export interface ReceivingHalf {
  readonly name: string;
  readonly effects: System['promise']['effects'];
  readonly tables: readonly TableShape[];
  /** Creates the consumer, which handles one message. It throws to have the message redelivered. */
  consumer(run: BenchRun, name: string): (event: Envelope) => Promise<void>;
}

/** Combines two halves into a system. */
export function composedSystem(name: string, sending: SendingHalf, receiving: ReceivingHalf): System {
  return {
    name,
    promise: { publishes: sending.publishes, effects: receiving.effects },
    tables: [DOMAIN, ...sending.tables, ...receiving.tables],
    standing: sending.standing,
    run: async (aws, workload) => {
      const run = createRun(aws, workload);
      await aws.during('write', async () => {
        for (let index = 0; index < workload.events; index += 1) await sending.write(run, index);
      });
      await aws.during('relay', async () => sending.relay?.(run));
      const bodies = aws
        .takePublished()
        .map(({ Source, DetailType, Detail }) =>
          deliveredEvent(
            { source: Source, type: DetailType, envelope: Detail },
            { account: '000000000000', region: 'us-east-1', time: START },
          ),
        );
      await aws.during('consume', async () => {
        for (const consumer of consumerNames(workload)) {
          const handle = receiving.consumer(run, consumer);
          await deliver(aws, bodies, workload.batchSize, async (body) =>
            handle(readDelivered(body).envelope),
          );
        }
      });
    },
  };
}

/** The clients of a run, and the faults that its workload injects. */
export function createRun(aws: MeteredAws, workload: Workload): BenchRun {
  const dynamodb = new DynamoDBClient(aws.client);
  const bus = new EventBridgeClient(aws.client);
  const unpublishable = retriedOrders(workload);
  const failIfDue = handlerFaults(workload);

  return {
    aws,
    workload,
    dynamodb,
    documents: DynamoDBDocumentClient.from(dynamodb),
    publish: async (events) => {
      const results: boolean[] = [];
      for (const call of chunks(events, PUT_EVENTS_ENTRIES_MAX)) {
        const faults = call.filter(({ envelope }) =>
          unpublishable.delete((JSON.parse(envelope) as Envelope).aggregateId),
        );
        aws.failNextEntries(faults.length);
        const { Entries = [] } = await bus.send(
          new PutEventsCommand({
            Entries: call.map(({ source, type, envelope }) => ({
              Source: source,
              DetailType: type,
              Detail: envelope,
              EventBusName: 'orders',
            })),
          }),
        );
        results.push(...call.map((_, index) => Entries[index]?.EventId !== undefined));
      }
      return results;
    },
    handle: (consumer, { aggregateId }) => {
      failIfDue(consumer, aggregateId);
      return { TableName: DOMAIN.name, ...handledWrite(consumer, aggregateId) };
    },
  };
}
