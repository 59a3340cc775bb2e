import { createServer } from 'node:http';
import { SWEEP_STATE_KEY } from '../../lambdas/runtime/store/rows.ts';
import { CALL_MS } from '../assumptions.ts';
import { RELAY_CONFIG } from './events.ts';
import { createOutboxRows, type PendingRows } from './outbox-rows.ts';

/**
 * A process that answers as DynamoDB and EventBridge do, after a fixed time: just what the relay asks. It is told in its
 * argument which rows the table holds, says its endpoint to whoever started it, and ends with them. Updates change nothing,
 * so the same rows can be published again and again.
 */
export interface StubContents {
  readonly rows: PendingRows;
  /** Up to where the sweep has come, epoch milliseconds. */
  readonly sweptTo: number;
}

interface Value {
  readonly S?: string;
}

const contents = JSON.parse(process.argv[2] ?? '') as StubContents;
const rows = await createOutboxRows(contents.rows);

function query(request: {
  ExpressionAttributeValues: Record<string, Value>;
  ExclusiveStartKey?: { SK: Value };
}): string {
  const values = request.ExpressionAttributeValues;
  const pk = values[':pk']?.S ?? '';
  if (!pk.startsWith('OUTBOX#')) return '{"Items":[],"Count":0,"ScannedCount":0}';
  const { items, last } = rows.page(pk, request.ExclusiveStartKey?.SK.S);
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
      return `{"Responses":[${request.Statements.map(() => '{"TableName":"Mailroom"}').join()}]}`;
    case 'Query':
      return query(request);
    case 'GetItem':
      return JSON.stringify({
        Item: {
          PK: { S: SWEEP_STATE_KEY.PK },
          SK: { S: SWEEP_STATE_KEY.SK },
          schema: { N: '1' },
          sweptTo: { N: String(contents.sweptTo) },
          shards: { N: String(RELAY_CONFIG.shards) },
        },
      });
    case 'UpdateItem':
    case 'PutItem':
    case 'DeleteItem':
      return '{}';
    default:
      throw new Error(`The stub does not know ${operation}`);
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
    // What it takes to make the answer is part of the fixed time.
    setTimeout(reply, Math.max(1, CALL_MS - (performance.now() - arrivedAt)));
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null)
    process.send?.({ endpoint: `http://127.0.0.1:${address.port}` });
});
process.once('disconnect', () => process.exit());
