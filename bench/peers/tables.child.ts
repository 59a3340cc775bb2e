import { createMeteredAws } from '../aws/metered-aws.ts';
import type { TableShape } from '../aws/metered-table.ts';
import { readWire, type Wire, writeWire } from '../aws/wire.ts';
import { argument, serve } from '../child.ts';
import { usageOf } from '../cost/measure.ts';

/**
 * A process with metered tables and a metered bus, which answers SDK clients over HTTP. The measured process controls it by
 * requests without a delay, each named in `x-amz-target`:
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

const aws = createMeteredAws(argument<ServedTables>().tables);
let step = '';
/** Called with each update that was applied. */
let settles: (body: Buffer) => void = () => {};

const controls: Readonly<Record<string, (input: Wire) => Wire | Promise<Wire>>> = {
  Step: (input) => {
    step = String(input.step);
    return {};
  },
  Inserts: ({ table }) => ({ Records: aws.takeInserts(String(table)) }),
  Settled: ({ statuses, rows }) =>
    new Promise((resolve) => {
      const values = (statuses as string[]).map((status) => `{"S":"${status}"}`);
      let left = Number(rows);
      settles = (body) => {
        if (values.some((value) => body.includes(value))) left -= 1;
        if (left === 0) resolve({});
      };
    }),
  Refuse: ({ entries }) => {
    aws.failNextEntries(Number(entries));
    return {};
  },
  Usage: (input) => {
    const requests = aws.requests().filter((request) => request.step === input.step);
    return { ...usageOf(requests, Number(input.events)), published: aws.takePublished().length };
  },
};

serve(
  async (target, body, headers) => {
    const { response } = await aws.during(step, () => aws.handle({ headers, body }));
    if (response.statusCode === 200 && target === 'DynamoDB_20120810.UpdateItem') settles(body);
    return response;
  },
  Object.fromEntries(
    Object.entries(controls).map(([name, run]) => [
      `Bench.${name}`,
      async (body: Buffer) => writeWire(await run(readWire(body))),
    ]),
  ),
);
