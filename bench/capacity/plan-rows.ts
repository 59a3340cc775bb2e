import { fullness } from './limits.ts';
import { SWEEP_SECONDS_MAX } from './load.ts';
import type { CapacityPlan } from './plan.ts';

/** Formats a plan as rows of name and amount. */
export function planRows({ mailrooms, mailroom, demand, limits, bill }: CapacityPlan): [string, string][] {
  const { stream, sweep, consumer } = mailroom;
  const met = limits.filter((limit) => fullness(limit) > 1);
  const raised = met.flatMap(({ name, quotaNeeded }) =>
    quotaNeeded === undefined ? [] : [`${name} to ${whole(quotaNeeded)}`],
  );
  return [
    ['Mailrooms', whole(mailrooms)],
    ['events/s of each, at the peak', fine(mailroom.eventsPerSecond)],
    ['`shards`', whole(mailroom.shards)],
    [
      '`warmThroughput`, write units/s',
      mailroom.warmWriteUnits ? whole(mailroom.warmWriteUnits) : 'not needed',
    ],
    ['partitions, and so stream shards', whole(mailroom.partitions)],
    ['commits throttled, as expected', `${(mailroom.throttledShare * 100).toFixed(2)}%`],
    ['`parallelizationFactor`', whole(stream.parallelizationFactor)],
    ['events of a stream invocation', stream.eventsPerInvocation.toFixed(1)],
    ['stream functions at a time', fine(stream.concurrency)],
    ['a sweep reads for', `${sweep.seconds.toFixed(1)} s of ${SWEEP_SECONDS_MAX} s`],
    ['functions at a time of one consumer', fine(consumer.concurrency)],
    ['PutEvents calls/s, in all', fine(mailrooms * stream.putEventsPerSecond)],
    ['deliveries/s, in all', fine(mailrooms * mailroom.eventsPerSecond * demand.consumers)],
    [
      'Lambda concurrency, in all',
      whole(mailrooms * (stream.concurrency + demand.consumers * consumer.concurrency)),
    ],
    [
      'limits met, first ones first',
      met.map(({ name }) => name).join(', ') || `none; next: ${limits[0]?.name}`,
    ],
    ['quotas to raise', raised.join(', ') || 'none'],
    ['USD a month', whole(bill.total)],
    ['USD a million events', bill.perMillionEvents.toFixed(2)],
  ];
}

function whole(count: number): string {
  return Math.ceil(count).toLocaleString('en-US');
}

function fine(count: number): string {
  return count < 10 ? count.toLocaleString('en-US', { maximumSignificantDigits: 2 }) : whole(count);
}
