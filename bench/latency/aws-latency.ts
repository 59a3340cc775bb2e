import { BUS_DELIVERY_MS, CALL_MS, QUEUE_POLL_MS, STREAM_POLLS_PER_SECOND } from '../assumptions.ts';
import type { FigureTable } from '../part.ts';

/** One step between the commit and the start of the handler, in milliseconds. */
interface AwsStep {
  readonly step: string;
  /** If the stream relay publishes. */
  readonly relay: number;
  /** The same, if the event just misses a poll. */
  readonly relayWorst: number;
  /** If the producer publishes at once. */
  readonly atOnce: number;
}

const POLL_MS = 1_000 / STREAM_POLLS_PER_SECOND;

/**
 * The steps on AWS, computed from documented polling and delivery; a call or an invocation of a warm function takes
 * {@link CALL_MS}. Cold starts and batching windows come on top.
 */
const AWS_STEPS: readonly AwsStep[] = [
  { step: 'the stream is polled', relay: POLL_MS / 2, relayWorst: POLL_MS, atOnce: 0 },
  { step: 'the stream relay is invoked', relay: CALL_MS, relayWorst: CALL_MS, atOnce: 0 },
  { step: 'PutEvents', relay: CALL_MS, relayWorst: CALL_MS, atOnce: CALL_MS },
  everywhere('the bus delivers to the queue (p90)', BUS_DELIVERY_MS),
  everywhere('the queue is polled', QUEUE_POLL_MS),
  everywhere('the consumer is invoked', CALL_MS),
];

function everywhere(step: string, ms: number): AwsStep {
  return { step, relay: ms, relayWorst: ms, atOnce: ms };
}

/** The steps, and their sum as the last one. */
export function awsLatency(): readonly AwsStep[] {
  const sum = (of: (step: AwsStep) => number) => AWS_STEPS.reduce((total, step) => total + of(step), 0);
  const all = {
    step: 'commit to handler',
    relay: sum(({ relay }) => relay),
    relayWorst: sum(({ relayWorst }) => relayWorst),
    atOnce: sum(({ atOnce }) => atOnce),
  };
  return [...AWS_STEPS, all];
}

/** The table of {@link awsLatency}. */
export function awsLatencyTable(): FigureTable {
  return {
    name: 'latency-aws',
    title: 'Latency on AWS, computed, ms',
    head: ['step', 'stream relay, mean', 'stream relay, worst poll', 'publish at once'],
    rows: awsLatency().map(({ step, relay, relayWorst, atOnce }) => [step, relay, relayWorst, atOnce]),
  };
}
