import { createServer } from 'node:http';
import { SWEEP_STATE_KEY } from '../../lambdas/runtime/store/keys.ts';
import { CALL_MS } from '../assumptions.ts';
import { RELAY_CONFIG } from './events.ts';
import { createOutboxRows } from './outbox-rows.ts';

/**
 * A process that answers as DynamoDB and EventBridge do, after a fixed delay, and supports only the relay's requests. Its
 * argument describes the contents of the table. It reports its endpoint to its parent process, and ends with it.
 */
export interface StubContents {
  /** Rows to add, spread evenly over a period. Epoch milliseconds. */
  readonly rows: readonly {
    readonly status: 'PENDING' | 'PUBLISHED';
    readonly count: number;
    readonly from: number;
    readonly to: number;
  }[];
  /** The time up to which the sweep has finished, in epoch milliseconds. */
  readonly sweptTo: number;
  /** True if updates change the rows; otherwise the same rows can be published repeatedly. */
  readonly remembers: boolean;
}

interface Value {
  readonly S?: string;
  readonly N?: string;
}

const contents = JSON.parse(process.argv[2] ?? '') as StubContents;
const rows = await createOutboxRows();
for (const { status, count, from, to } of contents.rows) {
  for (let n = 0; n < count; n += 1) rows.add(Math.floor(from + ((to - from) * n) / count), status);
}
rows.sort();
const pointers = new Map<string, Record<string, Value>>();
let sweptTo = contents.sweptTo;

/** One statement of a batch, by its text: the attributes it sets and its conditions. */
function execute({ Statement, Parameters }: { Statement: string; Parameters: Value[] }): string {
  if (!contents.remembers) return '{"TableName":"Mailroom"}';
  const names = [...Statement.matchAll(/"([^"]+)"=\?/g)].map(([, name]) => String(name));
  const values = new Map(names.map((name, i) => [`${name}${i}`, Parameters[i]?.S ?? Parameters[i]?.N ?? '']));
  const where = names.indexOf('PK');
  const row = rows.row(values.get(`PK${where}`) ?? '', values.get(`SK${where + 1}`) ?? '');
  const holds = names.slice(where + 2).every((name, i) => {
    const held = name === 'status' ? row?.status : String(row?.leaseUntil);
    return held === values.get(`${name}${where + 2 + i}`);
  });
  if (row === undefined || !holds)
    return '{"Error":{"Code":"ConditionalCheckFailed","Message":"The conditional request failed"}}';
  for (const [i, name] of names.slice(0, where).entries()) {
    if (name === 'status') row.status = values.get(`${name}${i}`) ?? '';
    if (name === 'leaseUntil') row.leaseUntil = Number(values.get(`${name}${i}`));
  }
  return '{"TableName":"Mailroom"}';
}

function query(request: {
  ExpressionAttributeValues: Record<string, Value>;
  ExclusiveStartKey?: { SK: Value };
}): string {
  const values = request.ExpressionAttributeValues;
  const pk = values[':pk']?.S ?? '';
  if (!pk.startsWith('OUTBOX#')) {
    const items = [...pointers.values()].filter(({ PK }) => PK?.S === pk);
    return JSON.stringify({ Items: items, Count: items.length, ScannedCount: items.length });
  }
  const { items, last } = rows.page(pk, values[':w0']?.S ?? '', request.ExclusiveStartKey?.SK.S);
  const cursor =
    last === undefined ? '' : `,"LastEvaluatedKey":${JSON.stringify({ PK: { S: pk }, SK: { S: last } })}`;
  return `{"Items":[${items.join()}],"Count":${items.length},"ScannedCount":${items.length}${cursor}}`;
}

function answer(operation: string, body: string): string {
  const request = JSON.parse(body);
  switch (operation) {
    case 'PutEvents': {
      const entries = request.Entries.map((_: unknown, n: number) => ({
        EventId: `11710aed-b79e-4468-a20b-${String(n).padStart(12, '0')}`,
      }));
      return JSON.stringify({ FailedEntryCount: 0, Entries: entries });
    }
    case 'BatchExecuteStatement':
      return `{"Responses":[${request.Statements.map(execute).join()}]}`;
    case 'Query':
      return query(request);
    case 'GetItem':
      return JSON.stringify({
        Item: {
          PK: { S: SWEEP_STATE_KEY.PK },
          SK: { S: SWEEP_STATE_KEY.SK },
          schema: { N: '1' },
          sweptTo: { N: String(sweptTo) },
          shards: { N: String(RELAY_CONFIG.shards) },
        },
      });
    case 'UpdateItem':
      if (contents.remembers) sweptTo = Number(request.ExpressionAttributeValues[':to']?.N);
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

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const arrivedAt = performance.now();
    const operation = String(request.headers['x-amz-target']).split('.')[1] ?? '';
    const text = answer(operation, Buffer.concat(chunks).toString());
    const reply = () => {
      const headers = { 'content-type': 'application/x-amz-json-1.0', 'x-amzn-requestid': 'STUB' };
      response.writeHead(200, { ...headers, 'content-length': Buffer.byteLength(text) }).end(text);
    };
    // The time to create the answer is part of the fixed delay.
    setTimeout(reply, Math.max(1, CALL_MS - (performance.now() - arrivedAt)));
  });
});
// Longer than any client's pause: a connection that is closed as a request arrives is a failed call.
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null)
    process.send?.({ endpoint: `http://127.0.0.1:${address.port}` });
});
process.once('disconnect', () => process.exit());
