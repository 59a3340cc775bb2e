import { createRequire } from 'node:module';
import { join } from 'node:path';
import { DOMAIN, EVENT, orderRow, payload, SOURCE } from '../alternatives/workload.ts';
import { answer, argument } from '../child.ts';
import { type Carrier, control, measureCarrier, PEER_TABLE, type PeerTask } from './carried.ts';

/** The parts of outbox-event-bus that are used here. */
interface PeerBus {
  emit(event: { type: string; payload: object }, transaction: object[]): Promise<void>;
  start(): void;
  stop(): Promise<void>;
}

type Class<T> = new (...options: never[]) => T;

const task = argument<PeerTask>();
if (task.peer === undefined) throw new Error('The task has no settings of the peer');
const { folder, workers, outbox, publisher } = task.peer;

/** Loads a package of the peer's folder: also the SDK, so that the peer's `instanceof` meets its own error classes. */
const load = createRequire(join(folder, 'package.json')) as (name: string) => Record<string, Class<unknown>>;

function create<T>(name: string, className: string, ...options: unknown[]): T {
  const found = load(name)[className];
  if (found === undefined) throw new Error(`${name} has no ${className}`);
  return new found(...(options as never[])) as T;
}

const client = create<object>('@aws-sdk/client-dynamodb', 'DynamoDBClient', {});
const eventBridgeClient = create<object>('@aws-sdk/client-eventbridge', 'EventBridgeClient', {});
const documents = (
  load('@aws-sdk/lib-dynamodb').DynamoDBDocumentClient as unknown as {
    from(client: object): { send(command: object): Promise<unknown> };
  }
).from(client);

/** A bus as the READMEs of its outbox and of its publisher set it up. */
function createBus(): PeerBus {
  const store = create('@outbox-event-bus/dynamodb-aws-sdk-outbox', 'DynamoDBAwsSdkOutbox', {
    client,
    tableName: PEER_TABLE.name,
    ...outbox,
  });
  const onError = (error: unknown) => console.error(error);
  const bus = create<PeerBus>('outbox-event-bus', 'OutboxEventBus', store, onError);
  create<{ subscribe(types: string[]): void }>(
    '@outbox-event-bus/eventbridge-publisher',
    'EventBridgePublisher',
    bus,
    { eventBridgeClient, source: SOURCE, eventBusName: 'mailroom-bus', processingConfig: publisher },
  ).subscribe([EVENT.type]);
  return bus;
}

const buses = Array.from({ length: workers }, createBus);

/** Events are written as in "Manual Transaction Collection" of its README, and relayed by every poller. */
const peer: Carrier = {
  write: async (index, payloadBytes) => {
    const TransactItems: object[] = [{ Put: { TableName: DOMAIN.name, Item: orderRow(index) } }];
    await buses[0]?.emit({ type: EVENT.type, payload: payload(index, payloadBytes) }, TransactItems);
    await documents.send(create('@aws-sdk/lib-dynamodb', 'TransactWriteCommand', { TransactItems }));
  },
  relay: async (rows) => {
    const settled = control('Settled', { statuses: ['completed', 'failed'], rows });
    for (const bus of buses) bus.start();
    await settled;
    await Promise.all(buses.map((bus) => bus.stop()));
  },
};

answer(await measureCarrier(peer, task));
