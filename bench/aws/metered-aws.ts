import { AsyncLocalStorage } from 'node:async_hooks';
import type { DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';
import type { DynamoDBRecord } from 'aws-lambda';
import { type Clock, systemClock } from '../../lambdas/runtime/base/clock.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import { toItem } from '../../testing/memory-store.ts';
import { ValidationException } from '../../testing/validation-exception.ts';
import { createDynamoDbWire } from './dynamodb-wire.ts';
import { createEventsWire, type WireEntry } from './events-wire.ts';
import { createMeteredTable, type MeteredTable, type TableShape } from './metered-table.ts';
import { readWire, type Wire, writeWire } from './wire.ts';

/** One request, and its billed units by the published rules of its service. */
export interface MeteredRequest {
  readonly service: 'dynamodb' | 'events' | 'sqs' | 'lambda';
  /** E.g. `TransactWriteItems`, `PutEvents`, `ReceiveMessage`, `Invoke`. */
  readonly operation: string;
  /** The step that it was made in: see {@link MeteredAws.during}. */
  readonly step: string;
  /** Write request units, including those of indexes; DynamoDB only. */
  readonly writeUnits: number;
  /** Read request units; DynamoDB only. */
  readonly readUnits: number;
  /** Other billed units: entries of PutEvents per 64 KB, requests of SQS per 64 KB, invocations. */
  readonly billed: number;
}

/**
 * In-memory DynamoDB and EventBridge at the level of HTTP requests: the real SDK clients serialise, sign and parse, and every
 * request is counted with the units that AWS would bill for it.
 */
export interface MeteredAws {
  /** Configuration for `new DynamoDBClient(aws.client)`, `new EventBridgeClient(aws.client)`, and others. */
  readonly client: Pick<DynamoDBClientConfig, 'region' | 'credentials' | 'requestHandler' | 'maxAttempts'>;
  /** The clock here. Code that works against these tables reads it and pauses on it. */
  readonly clock: Clock;
  /**
   * Every request so far, in order.
   *
   * @throws the reason why the first unsupported request was not counted: a total without it would be wrong
   */
  requests(): readonly MeteredRequest[];
  /** Runs work whose requests are recorded under this step, e.g. `write`, `relay`, `consume`. */
  during<T>(step: string, work: () => Promise<T>): Promise<T>;
  /** Records requests that no SDK client sends: a receive and a delete by Lambda's poller, an invocation. */
  book(service: 'sqs' | 'lambda', operation: string, billed: number): void;
  /** The INSERT records of a table since the last call, as Lambda delivers them. */
  takeInserts(tableName: string): DynamoDBRecord[];
  /** The PutEvents entries that the bus accepted since the last call. */
  takePublished(): readonly {
    readonly Source: string;
    readonly DetailType: string;
    readonly Detail: string;
  }[];
  /** Makes the next PutEvents entries fail like those of a throttled bus (per entry, in a response with status 200). */
  failNextEntries(count: number): void;
  /** Copies of a table's items, in the order of their keys. */
  items(tableName: string): Item[];
  /** Puts initial items, without counting them or adding them to the stream. */
  seed(tableName: string, items: Iterable<Item>): void;
}

/** Options of {@link createMeteredAws}. */
export interface MeteredAwsOptions {
  /** @default the system clock */
  readonly clock?: Clock | undefined;
}

/** The members that are read of a request that the SDK passes to its handler. */
interface WireRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/**
 * Creates an AWS with these tables and one bus.
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
    throw new Error(`The metered AWS has no table ${name}`);
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

/** Answers a request by its target, and records its units. */
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
      throw new Error(`The metered AWS does not support the request ${target}`);
    try {
      const { answer, error, writeUnits = 0, readUnits = 0 } = dynamoDb(operation, input);
      record({ service: 'dynamodb', operation, writeUnits, readUnits, billed: 0 });
      return { answer, error };
    } catch (error) {
      if (!(error instanceof ValidationException)) throw error;
      record({ service: 'dynamodb', operation, billed: 0 }); // refused before it reads an item: no units
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
