import { AsyncLocalStorage } from 'node:async_hooks';
import type { DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';
import { type Clock, systemClock } from '../../lambdas/runtime/base/clock.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import { toItem } from '../../testing/memory-store.ts';
import { ValidationException } from '../../testing/validation-exception.ts';
import { type BilledEntry, busEvents } from './billing.ts';
import { createDynamoDb } from './dynamodb.ts';
import { createMeteredObjects } from './metered-objects.ts';
import { createMeteredTable, type MeteredTable, type TableShape } from './metered-table.ts';
import { known, type Metered, readWire, type Wire, writeWire } from './wire.ts';

/** One request, and its billed units by the published rules of its service. */
export interface MeteredRequest {
  readonly service: 'dynamodb' | 'events' | 'sqs' | 'lambda' | 's3';
  /** E.g. `TransactWriteItems`, `PutEvents`, `ReceiveMessage`, `Invoke`. */
  readonly operation: string;
  /** The step that it was made in: see `during`. */
  readonly step: string;
  /** Write request units, including those of indexes; DynamoDB only. */
  readonly writeUnits: number;
  /** Read request units; DynamoDB only. */
  readonly readUnits: number;
  /** Other billed units: entries of PutEvents per 64 KB, requests of SQS per 64 KB, invocations. */
  readonly billed: number;
}

/**
 * In-memory DynamoDB and EventBridge at the level of HTTP requests: the real SDK clients serialize, sign and parse, and every
 * request is counted with the units that AWS would bill for it.
 */
export type MeteredAws = ReturnType<typeof createMeteredAws>;

/** The members that are read of a request that the SDK passes to its handler. */
interface WireRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body?: string | Uint8Array;
}

/** The step of each request. One for all: each storage that was used slows every later promise of its process. */
const STEPS = new AsyncLocalStorage<string>();

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
  { clock = systemClock }: { readonly clock?: Clock } = {},
) {
  const tables = new Map(shapes.map((shape) => [shape.name, createMeteredTable(shape)]));
  const bus = createBus();
  const made: MeteredRequest[] = [];
  let unknown: unknown;

  const record: RequestLog = (request) => {
    made.push({ step: STEPS.getStore() ?? '', writeUnits: 0, readUnits: 0, billed: 0, ...request });
  };
  const objects = createMeteredObjects((operation) => record({ service: 's3', operation, billed: 1 }));
  const serve = createServices(createDynamoDb(tables, clock), bus, record);

  function tableOf(name: string): MeteredTable {
    const found = tables.get(name);
    if (found) return found;
    throw new Error(`The metered AWS has no table ${name}`);
  }

  /** The SDK's request handler. */
  async function handle({ headers, body }: WireRequest) {
    try {
      const { answer, error } = serve(String(headers['x-amz-target']), readWire(body));
      const members = error === undefined ? answer : { __type: `com.amazonaws#${error}`, ...answer };
      return {
        response: {
          statusCode: error === undefined ? 200 : 400,
          headers: { 'content-type': 'application/x-amz-json-1.0', 'x-amzn-requestid': 'metered' },
          body: Buffer.from(writeWire(members)),
        },
      };
    } catch (error) {
      unknown ??= error;
      throw error;
    }
  }

  const client: Pick<DynamoDBClientConfig, 'region' | 'credentials' | 'requestHandler' | 'maxAttempts'> = {
    region: 'us-east-1',
    credentials: { accessKeyId: 'metered', secretAccessKey: 'metered' },
    requestHandler: { handle } as never,
    maxAttempts: 1,
  };

  return {
    /** Configuration for `new DynamoDBClient(aws.client)`, `new EventBridgeClient(aws.client)`, and others. */
    client,
    handle,
    /** One bucket of S3. */
    objects,
    /** The clock here. Code that works against these tables reads it and pauses on it. */
    clock,
    /**
     * Every request so far, in order.
     *
     * @throws the reason why the first unsupported request was not counted: a total without it would be wrong
     */
    requests: (): readonly MeteredRequest[] => {
      if (unknown !== undefined) throw unknown;
      return made;
    },
    /** Runs work whose requests are recorded under this step, e.g. `write`, `relay`, `consume`. */
    during: <T>(step: string, work: () => Promise<T>): Promise<T> => STEPS.run(step, work),
    /** Records requests that no SDK client sends: a receive and a delete by Lambda's poller, an invocation. */
    book: (service: 'sqs' | 'lambda', operation: string, billed: number) =>
      record({ service, operation, billed }),
    /** The INSERT records of a table since the last call, as Lambda delivers them. */
    takeInserts: (tableName: string) => tableOf(tableName).takeInserts(),
    /** The PutEvents entries that the bus accepted since the last call. */
    takePublished: bus.take,
    /** Makes the next PutEvents entries fail like those of a throttled bus (per entry, in a response with status 200). */
    failNextEntries: bus.failNext,
    /** Copies of a table's items, in the order of their keys. */
    items: (tableName: string): Item[] => tableOf(tableName).view().entries().map(toItem),
    /** Puts initial items, without counting them or adding them to the stream. */
    seed: (tableName: string, items: Iterable<Item>) => tableOf(tableName).seed(items),
  };
}

type RequestLog = (request: Pick<MeteredRequest, 'service' | 'operation'> & Partial<MeteredRequest>) => void;

/** Answers a request by its target, and records its units. */
function createServices(
  dynamoDb: ReturnType<typeof createDynamoDb>,
  bus: ReturnType<typeof createBus>,
  record: RequestLog,
) {
  return (target: string, input: Wire): Metered => {
    const [service, operation = ''] = target.split('.');
    if (target === 'AWSEvents.PutEvents') {
      const { answer, billed } = bus.put(input);
      record({ service: 'events', operation, billed });
      return { answer };
    }
    if (service !== 'DynamoDB_20120810')
      throw new Error(`The metered AWS does not support the request ${target}`);
    try {
      const metered = dynamoDb(operation, input);
      const { writeUnits = 0, readUnits = 0 } = metered;
      record({ service: 'dynamodb', operation, writeUnits, readUnits });
      return metered;
    } catch (error) {
      if (!(error instanceof ValidationException)) throw error;
      record({ service: 'dynamodb', operation }); // refused before it reads an item: no units
      return { answer: { message: error.message }, error: error.name };
    }
  };
}

/** A bus that returns a result per entry, and stores the accepted ones. */
function createBus() {
  let published: Required<BilledEntry>[] = [];
  let toFail = 0;
  let accepted = 0;

  function put(entry: BilledEntry): Wire {
    if (toFail > 0) {
      toFail -= 1;
      return { ErrorCode: 'ThrottlingException', ErrorMessage: 'Rate exceeded' };
    }
    published.push(entry as Required<BilledEntry>);
    accepted += 1;
    return { EventId: `accepted-${accepted}` };
  }

  return {
    /** Only accepted entries, i.e. published events, are billed (EventBridge pricing). */
    put: (input: Wire) => {
      known('PutEvents', input, ['Entries']);
      const sent = input.Entries as readonly BilledEntry[];
      const Entries = sent.map(put);
      const billed = sent.reduce((sum, entry, i) => sum + (Entries[i]?.EventId ? busEvents(entry) : 0), 0);
      return {
        answer: { FailedEntryCount: Entries.filter(({ ErrorCode }) => ErrorCode).length, Entries },
        billed,
      };
    },
    take: () => {
      const taken = published;
      published = [];
      return taken;
    },
    failNext: (count: number) => {
      toFail += count;
    },
  };
}
