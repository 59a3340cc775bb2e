import { SWEEP_STATE_KEY } from '../../lambdas/runtime/store/keys.ts';
import { toAttributes } from '../../testing/memory-store.ts';
import { argument, serve } from '../child.ts';
import { RELAY_CONFIG, tableOfOrders } from './measured-relay.ts';

/**
 * A process that answers as DynamoDB and EventBridge do and supports only the relay's requests. Nothing changes its rows, so the
 * same ones can be published repeatedly.
 */
export interface StubContents {
  /** Rows that are pending, written evenly over a period in epoch milliseconds. */
  readonly rows: number;
  readonly from: number;
  readonly to: number;
}

interface StubValue {
  readonly S?: string;
  readonly N?: string;
}

const { rows, from, to } = argument<StubContents>();

/** The rows of each partition, which fit into one page of a query. */
const partitions = new Map<string, object[]>();
for (const item of (await tableOfOrders(rows, from, to)).items()) {
  const pk = String(item.PK);
  partitions.set(pk, [...(partitions.get(pk) ?? []), toAttributes(item)]);
}
const pages = new Map([...partitions].map(([pk, found]) => [pk, page(found)]));

/** The sweep's pointers to unsettled minutes, by key. */
const pointers = new Map<string, Record<string, StubValue>>();

function page(found: readonly object[]): string {
  return JSON.stringify({ Items: found, Count: found.length, ScannedCount: found.length });
}

function query({ ':pk': pk, ':w0': status }: Record<string, StubValue>): string {
  const key = pk?.S ?? '';
  if (!key.startsWith('OUTBOX#')) return page([...pointers.values()].filter(({ PK }) => PK?.S === key));
  return (status?.S === 'PENDING' && pages.get(key)) || page([]);
}

const SWEEP_STATE = JSON.stringify({
  Item: toAttributes({ ...SWEEP_STATE_KEY, schema: 1, sweptTo: to, shards: RELAY_CONFIG.shards }),
});

function answered(operation: string | undefined, body: Buffer): string {
  const request = JSON.parse(body.toString());
  switch (operation) {
    case 'PutEvents': {
      const eventId = (_: unknown, n: number) => ({
        EventId: `11710aed-b79e-4468-a20b-${String(n).padStart(12, '0')}`,
      });
      return JSON.stringify({ FailedEntryCount: 0, Entries: request.Entries.map(eventId) });
    }
    case 'BatchExecuteStatement':
      return `{"Responses":[${request.Statements.map(() => '{"TableName":"Mailroom"}').join()}]}`;
    case 'Query':
      return query(request.ExpressionAttributeValues);
    case 'GetItem':
      return SWEEP_STATE;
    case 'UpdateItem':
      return '{}';
    case 'PutItem':
      pointers.set(request.Item.PK.S + request.Item.SK.S, request.Item);
      return '{}';
    case 'DeleteItem':
      pointers.delete(request.Key.PK.S + request.Key.SK.S);
      return '{}';
    default:
      throw new Error(`The stub does not support ${operation}`);
  }
}

serve(async (target, body) => ({
  statusCode: 200,
  headers: { 'content-type': 'application/x-amz-json-1.0', 'x-amzn-requestid': 'STUB' },
  body: answered(target.split('.')[1], body),
}));
