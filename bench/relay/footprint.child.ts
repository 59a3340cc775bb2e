import { readFileSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import type { DynamoDBStreamEvent } from 'aws-lambda';
import type { Bus } from '../../lambdas/runtime/bus/event-bus.ts';
import { createRelayStream } from '../../lambdas/runtime/relay/relay-stream.ts';
import { answer, relayPorts, roundClock } from './ports.ts';

/** A batch whose memory a fresh process is to measure. */
export interface FootprintTask {
  /** A file that holds the batch as JSON, as Lambda's runtime is handed it. */
  readonly file: string;
  /** A small one, that is handled so often before, so that what is loaded and compiled once is there. */
  readonly warmUpFile: string;
  readonly warmUpRounds: number;
  /** When the batches were written, epoch milliseconds. */
  readonly now: number;
  /** Whether to collect garbage again and again, to see what is alive; else nothing is forced. */
  readonly collect: boolean;
}

/** What it found, bytes. */
export interface Footprint {
  /** The most that was alive at a time beside the batch itself; 0 where nothing was collected. */
  readonly peakBytes: number;
  /** The most memory that the process had. */
  readonly maxRssBytes: number;
}

/** Collections before the measured batch: what the warm-up leaves goes only after some. */
const SETTLE_ROUNDS = 20;

/** How often is looked, at about even distances. */
const SAMPLES = 40;

const task = JSON.parse(process.argv[2] ?? '') as FootprintTask;
const clock = roundClock(task.now);
const { deps } = relayPorts();
let sample = () => {};
const bus: Bus = {
  put: async (entries, timeoutMs) => {
    const results = await deps.bus.put(entries, timeoutMs);
    sample();
    return results;
  },
};
const handler = createRelayStream({ ...deps, bus, clock });

async function carry(event: DynamoDBStreamEvent): Promise<void> {
  clock.putBack();
  const { batchItemFailures } = await handler(event);
  if (batchItemFailures.length > 0) throw new Error(`${batchItemFailures.length} records were handed back`);
}

function read(file: string): DynamoDBStreamEvent {
  return JSON.parse(readFileSync(file, 'utf8')) as DynamoDBStreamEvent;
}

/** What is alive, bytes. */
function alive(): number {
  global.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const warmUp = read(task.warmUpFile);
for (let i = 0; i < task.warmUpRounds; i += 1) await carry(warmUp);
const event = read(task.file);
let before = task.collect ? alive() : 0;
for (let i = 0; task.collect && i < SETTLE_ROUNDS; i += 1) {
  await turn();
  before = Math.min(before, alive());
}
let peak = before;
if (task.collect) {
  const every = Math.ceil(event.Records.length / 10 / SAMPLES);
  let calls = 0;
  sample = () => {
    calls += 1;
    // In the next turn, when the results are taken in.
    if (calls % every === 0) setImmediate(() => (peak = Math.max(peak, alive())));
  };
}
await carry(event);
const footprint: Footprint = {
  peakBytes: peak - before,
  maxRssBytes: process.resourceUsage().maxRSS * 1_024,
};
answer(footprint);
