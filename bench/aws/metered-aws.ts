import { AsyncLocalStorage } from 'node:async_hooks';
import type { DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';
import type { DynamoDBRecord } from 'aws-lambda';
import { type Clock, systemClock } from '../../lambdas/runtime/clock.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import { toItem } from '../../testing/memory-store.ts';
import { ValidationException } from '../../testing/validation-exception.ts';
import { createDynamoDbWire } from './dynamodb-wire.ts';
import { createEventsWire, type WireEntry } from './events-wire.ts';
import { createMeteredTable, type MeteredTable, type TableShape } from './metered-table.ts';
import { readWire, type Wire, writeWire } from './wire.ts';

/** One request that was made, and what it comes to by the published rules of its service. */
export interface MeteredRequest {
  readonly service: 'dynamodb' | 'events' | 'sqs' | 'lambda';
  /** E.g. `TransactWriteItems`, `PutEvents`, `ReceiveMessage`, `Invoke`. */
  readonly operation: string;
  /** What it was made for: see {@link MeteredAws.during}. */
  readonly step: string;
  /** Write request units: of DynamoDB only, those of indexes with them. */
  readonly writeUnits: number;
  /** Read request units: of DynamoDB only. */
  readonly readUnits: number;
  /** What else is billed by number: entries of PutEvents by 64 KB, requests of SQS by 64 KB, invocations. */
  readonly billed: number;
}

/**
 * DynamoDB and EventBridge in memory at the level of HTTP requests: the real SDK clients serialise, sign and parse, and every
 * request is counted with the units that AWS would bill for it.
 */
export interface MeteredAws {
  /** For `new DynamoDBClient(aws.client)`, `new EventBridgeClient(aws.client)`, and the like. */
  readonly client: Pick<DynamoDBClientConfig, 'region' | 'credentials' | 'requestHandler' | 'maxAttempts'>;
  /** The time here. Whoever works against these tables reads it, and pauses on it. */
  readonly clock: Clock;
  /**
   * Every request so far, in order.
   *
   * @throws what was wrong with the first request that is not known here: a count without it would be wrong
   */
  requests(): readonly MeteredRequest[];
  /** Runs work whose requests are booked under this step, e.g. `write`, `relay`, `consume`. */
  during<T>(step: string, work: () => Promise<T>): Promise<T>;
  /** Books what no client of ours sends: a receive and a delete by Lambda's poller, an invocation. */
  book(service: 'sqs' | 'lambda', operation: string, billed: number): void;
  /** The INSERT records of a table since the last call, as Lambda hands them over. */
  takeInserts(tableName: string): DynamoDBRecord[];
  /** What the bus accepted since the last call: the entries of PutEvents. */
  takePublished(): readonly {
    readonly Source: string;
    readonly DetailType: string;
    readonly Detail: string;
  }[];
  /** Makes the next PutEvents entries fail, so many, as a throttled bus does (per entry, in an answer of 200). */
  failNextEntries(count: number): void;
  /** The items of a table, as copies, in the order of their keys. */
  items(tableName: string): Item[];
  /** Puts items that were there all along: nothing is counted, and the stream does not have them. */
  seed(tableName: string, items: Iterable<Item>): void;
}

/** The settings of {@link createMeteredAws}. */
export interface MeteredAwsOptions {
  /** @default the machine's */
  readonly clock?: Clock | undefined;
}

/** A request as the SDK hands it to its handler, as far as it is read here. */
interface WireRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/**
 * Makes an AWS with these tables and one bus.
 *
 * @example
 * ```ts
 * const aws = createMeteredAws([{ name: 'Mailroom', keys: ['PK', 'SK'] }]);
 * const table = dynamoTable({ client: new DynamoDBClient(aws.client), tableName: 'Mailroom' });
 * await aws.during('write', () => table.write({ Put: { Item: { PK: 'a', SK: 'b' } } }));
 * aws.requests(); // [{ operation: 'PutItem', step: 'write', writeUnits: 1, … }]
 * ```
 */
export function createMeteredAws(
  shapes: readonly TableShape[],
  { clock = systemClock }: MeteredAwsOptions = {},
): MeteredAws {
  const tables = new Map(shapes.map((shape) => [shape.name, createMeteredTable(shape)]));
  const events = createEventsWire();
  const steps = new AsyncLocalStorage<string>();
  const made: MeteredRequest[] = [];
  let unknown: unknown;

  const record: RequestLog = (request) => {
    made.push({ step: steps.getStore() ?? '', writeUnits: 0, readUnits: 0, ...request });
  };
  const serve = createServices(createDynamoDbWire(tables, clock), events, record);

  async function handle({ headers, body }: WireRequest) {
    const target = headers['x-amz-target'] ?? 'without a target';
    try {
      const { answer, error } = serve(target, readWire(body));
      return response(error === undefined ? answer : { __type: `com.amazonaws#${error}`, ...answer }, error);
    } catch (error) {
      unknown ??= error;
      throw error;
    }
  }

  function tableOf(name: string): MeteredTable {
    const found = tables.get(name);
    if (found) return found;
    throw new Error(`There is no table ${name} in the metered AWS`);
  }

  return {
    client: {
      region: 'us-east-1',
      credentials: { accessKeyId: 'metered', secretAccessKey: 'metered' },
      requestHandler: { handle } as never,
      maxAttempts: 1,
    },
    clock,
    requests: () => {
      if (unknown !== undefined) throw unknown;
      return made;
    },
    during: (step, work) => steps.run(step, work),
    book: (service, operation, billed) => record({ service, operation, billed }),
    takeInserts: (name) => tableOf(name).takeInserts(),
    takePublished: () => events.takePublished() as Required<WireEntry>[],
    failNextEntries: (count) => events.failNext(count),
    items: (name) => tableOf(name).view().all().map(toItem),
    seed: (name, items) => tableOf(name).seed(items),
  };
}

type RequestLog = (
  request: Omit<MeteredRequest, 'step' | 'writeUnits' | 'readUnits'> & Partial<MeteredRequest>,
) => void;

/** Answers a request by its target, and records what it comes to. */
function createServices(
  dynamoDb: ReturnType<typeof createDynamoDbWire>,
  events: ReturnType<typeof createEventsWire>,
  record: RequestLog,
) {
  return (target: string, input: Wire): { readonly answer: Wire; readonly error?: string | undefined } => {
    const [service = '', operation = ''] = target.split('.');
    if (service === 'AWSEvents') {
      const { answer, billed } = events.putEvents(operation, input);
      record({ service: 'events', operation, billed });
      return { answer };
    }
    if (service !== 'DynamoDB_20120810')
      throw new Error(`The request ${target} is not known to the metered AWS`);
    try {
      const { answer, error, writeUnits = 0, readUnits = 0 } = dynamoDb(operation, input);
      record({ service: 'dynamodb', operation, writeUnits, readUnits, billed: 0 });
      return { answer, error };
    } catch (error) {
      if (!(error instanceof ValidationException)) throw error;
      record({ service: 'dynamodb', operation, billed: 0 }); // refused before it touches an item: no units
      return { answer: { message: error.message }, error: error.name };
    }
  };
}

function response(body: Wire, error: string | undefined) {
  const headers = { 'content-type': 'application/x-amz-json-1.0', 'x-amzn-requestid': 'metered' };
  return {
    response: { statusCode: error === undefined ? 200 : 400, headers, body: Buffer.from(writeWire(body)) },
  };
}
