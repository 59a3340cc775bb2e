import { fullness } from './limits.ts';
import { SWEEP_SECONDS_MAX } from './load.ts';
import type { CapacityPlan } from './plan.ts';

/** The name and value of each line of a plan: its settings, the quotas it needs and its bill. */
export function planRows({ mailrooms, mailroom, demand, limits, bill }: CapacityPlan): [string, string][] {
  const { stream, sweep, consumer } = mailroom;
  const raised = limitsMet(limits).flatMap(({ name, quotaNeeded }) =>
    quotaNeeded === undefined ? [] : [`${name} to ${whole(quotaNeeded)}`],
  );
  return [
    ['Mailrooms', whole(mailrooms)],
    ['peak events/s per Mailroom', fine(mailroom.eventsPerSecond)],
    ['`shards`', whole(mailroom.shards)],
    [
      '`warmThroughput`, write units/s',
      mailroom.warmWriteUnits ? whole(mailroom.warmWriteUnits) : 'not needed',
    ],
    ['commits throttled (expected)', `${(mailroom.throttledShare * 100).toFixed(2)}%`],
    [`sweep reads, of at most ${SWEEP_SECONDS_MAX} s`, `${sweep.seconds.toFixed(1)} s`],
    [
      'Lambda concurrency, total',
      whole(mailrooms * (stream.concurrency + demand.consumers * consumer.concurrency)),
    ],
    ['quotas to raise', raised.join(', ') || 'none'],
    ['USD per month', whole(bill.total)],
    ['USD per million events', bill.perMillionEvents.toFixed(2)],
  ];
}

/** The lines that only the plan for a single rate shows: what follows from {@link planRows}, and the limits in its way. */
export function planDetails({ mailrooms, mailroom, demand, limits }: CapacityPlan): [string, string][] {
  const { stream, consumer } = mailroom;
  const met = limitsMet(limits).map(({ name }) => name);
  return [
    ['partitions, and so stream shards', whole(mailroom.partitions)],
    ['`parallelizationFactor`', whole(stream.parallelizationFactor)],
    ['events per stream invocation', stream.eventsPerInvocation.toFixed(1)],
    ['concurrent stream functions', fine(stream.concurrency)],
    ['concurrent functions per consumer', fine(consumer.concurrency)],
    ['PutEvents calls/s, total', fine(mailrooms * stream.putEventsPerSecond)],
    ['deliveries/s, total', fine(mailrooms * mailroom.eventsPerSecond * demand.consumers)],
    ['limits reached, in order', met.join(', ') || `none; next: ${limits[0]?.name}`],
  ];
}

function limitsMet(limits: CapacityPlan['limits']): CapacityPlan['limits'] {
  return limits.filter((limit) => fullness(limit) > 1);
}

function whole(count: number): string {
  return Math.ceil(count).toLocaleString('en-US');
}

function fine(count: number): string {
  return count < 10 ? count.toLocaleString('en-US', { maximumSignificantDigits: 2 }) : whole(count);
}
