import type { DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';
import type { DynamoDBRecord } from 'aws-lambda';

/** A table to be made in {@link MeteredAws}. */
export interface TableShape {
  readonly name: string;
  /** The names of the key attributes: partition key and, where there is one, sort key. */
  readonly keys: readonly [partition: string, sort?: string];
  /** Global secondary indexes with all attributes projected; an item without an index's keys is not in it. */
  readonly indexes?: readonly {
    readonly name: string;
    readonly keys: readonly [partition: string, sort?: string];
  }[];
}

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
  /** Every request so far, in order. */
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
}
