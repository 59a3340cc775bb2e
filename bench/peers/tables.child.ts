import { createServer, type IncomingMessage } from 'node:http';
import { CALL_MS } from '../assumptions.ts';
import { createMeteredAws } from '../aws/metered-aws.ts';
import type { TableShape } from '../aws/metered-table.ts';
import { readWire, type Wire, writeWire } from '../aws/wire.ts';
import { usageOf } from '../cost/measure.ts';

/**
 * A process with metered tables and a metered bus, which answers SDK clients over HTTP after a fixed delay. Its argument is a
 * {@link ServedTables}. It reports its endpoint to its parent process, and ends with it.
 *
 * The measured process controls it by requests without a delay, each named in `x-amz-target`:
 *
 * - `Bench.Step` `{ step }`: the step of the requests that follow
 * - `Bench.Inserts` `{ table }`: the stream's records since the last call
 * - `Bench.Settled` `{ statuses, rows }`: answers after as many updates that set one of these statuses
 * - `Bench.Refuse` `{ entries }`: the bus refuses the next entries
 * - `Bench.Usage` `{ step, events }`: the usage of one event in a step, and the number of events that the bus accepted since the
 *   last call
 */
export interface ServedTables {
  readonly tables: readonly TableShape[];
}

const { tables } = JSON.parse(process.argv[2] ?? '') as ServedTables;
const aws = createMeteredAws(tables);
const service = aws.client.requestHandler as unknown as {
  handle(request: {
    headers: IncomingMessage['headers'];
    body: Uint8Array;
  }): Promise<{ response: { statusCode: number; headers: Record<string, string>; body: Uint8Array } }>;
};
let step = '';
/** Called with each update that was applied. */
let settles: (body: Buffer) => void = () => {};

const controls: Readonly<Record<string, (input: Wire) => Wire | Promise<Wire>>> = {
  'Bench.Step': (input) => {
    step = String(input.step);
    return {};
  },
  'Bench.Inserts': ({ table }) => ({ Records: aws.takeInserts(String(table)) }),
  'Bench.Settled': ({ statuses, rows }) =>
    new Promise((resolve) => {
      const values = (statuses as string[]).map((status) => `{"S":"${status}"}`);
      let left = Number(rows);
      settles = (body) => {
        if (values.some((value) => body.includes(value))) left -= 1;
        if (left === 0) resolve({});
      };
    }),
  'Bench.Refuse': ({ entries }) => {
    aws.failNextEntries(Number(entries));
    return {};
  },
  'Bench.Usage': (input) => {
    const requests = aws.requests().filter((request) => request.step === input.step);
    return { ...usageOf(requests, Number(input.events)), published: aws.takePublished().length };
  },
};

const server = createServer(async (request, response) => {
  const arrivedAt = performance.now();
  const body = Buffer.concat(await request.toArray());
  const control = controls[String(request.headers['x-amz-target'])];
  if (control !== undefined) {
    response.end(writeWire(await control(readWire(body))));
    return;
  }
  const served = await aws.during(step, () => service.handle({ headers: request.headers, body }));
  const { statusCode, headers, body: answer } = served.response;
  if (statusCode === 200 && request.headers['x-amz-target'] === 'DynamoDB_20120810.UpdateItem') settles(body);
  // The time to create the answer is part of the fixed delay.
  const left = Math.max(1, CALL_MS - (performance.now() - arrivedAt));
  setTimeout(
    () => response.writeHead(statusCode, { ...headers, 'content-length': answer.byteLength }).end(answer),
    left,
  );
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null)
    process.send?.({ endpoint: `http://127.0.0.1:${address.port}` });
});
process.once('disconnect', () => process.exit());
