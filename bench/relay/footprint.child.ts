import { readFileSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import type { DynamoDBStreamEvent } from 'aws-lambda';
import type { Bus } from '../../lambdas/runtime/bus/event-bus.ts';
import { createRelayStream } from '../../lambdas/runtime/relay/relay-stream.ts';
import { answer, relayPorts, roundClock } from './ports.ts';

/** The batch whose memory a fresh process measures. */
export interface FootprintTask {
  /** A file with the batch as JSON, as Lambda's runtime receives it. */
  readonly file: string;
  /** A small batch, handled this often before, so that all code is loaded and compiled. */
  readonly warmUpFile: string;
  readonly warmUpRounds: number;
  /** When the batches were written, in epoch milliseconds. */
  readonly now: number;
  /** Collects garbage repeatedly, to measure live memory; otherwise nothing is forced. */
  readonly collect: boolean;
}

/** The result in bytes. */
export interface Footprint {
  /** The maximum of live memory in addition to the batch itself; 0 if no garbage was collected. */
  readonly peakBytes: number;
  /** The maximum memory of the process. */
  readonly maxRssBytes: number;
}

/** Garbage collections before the measured batch: the warm-up's garbage takes several to go. */
const SETTLE_ROUNDS = 20;

/** The number of measurements, at roughly even intervals. */
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
  if (batchItemFailures.length > 0) throw new Error(`${batchItemFailures.length} records failed`);
}

function read(file: string): DynamoDBStreamEvent {
  return JSON.parse(readFileSync(file, 'utf8')) as DynamoDBStreamEvent;
}

/** Live memory in bytes. */
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
    // In the next turn, when the results are processed.
    if (calls % every === 0) setImmediate(() => (peak = Math.max(peak, alive())));
  };
}
await carry(event);
const footprint: Footprint = {
  peakBytes: peak - before,
  maxRssBytes: process.resourceUsage().maxRSS * 1_024,
};
answer(footprint);
