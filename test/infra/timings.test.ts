import { Duration } from 'aws-cdk-lib';
import { describe, expect, test } from 'vitest';
import { refuse } from '../../lib/checks/refusal.ts';
import { archiveProblems, defaultInboxRetention } from '../../lib/checks/retentions.ts';
import {
  type ConsumerSettings,
  consumerProblems,
  type RelaySettings,
  relayProblems,
} from '../../lib/checks/timings.ts';

const { seconds, minutes, hours, days, millis } = Duration;

const relay: RelaySettings = {
  shards: 8,
  streamLease: seconds(30),
  publishTimeout: seconds(5),
  claimLease: seconds(30),
  sweepEvery: minutes(1),
  maxAttempts: 10,
  publishedRetention: days(7),
};

const consumer: ConsumerSettings = {
  lease: seconds(30),
  timeout: seconds(30),
  timeoutMax: minutes(15),
  visibilityTimeout: minutes(3),
  retry: { maxAttempts: 10, first: seconds(2), longest: minutes(15) },
  outageTolerance: hours(4),
  batchSize: 10,
  queueRetention: days(14),
  deadLetterRetention: days(14),
  inboxRetention: days(35),
};

describe("a relay's settings", () => {
  test('work by default', () => {
    expect(relayProblems(relay)).toEqual([]);
  });

  const WRONG: Readonly<Record<string, Partial<RelaySettings>>> = {
    'a stream lease that freshness, publish and margin use up': { streamLease: seconds(12) },
    'a batching window that makes records late': { batchingWindow: seconds(4) },
    'a batching window of part of a second': { batchingWindow: millis(500) },
    'a claim that a publish could outlast': { claimLease: seconds(12) },
    'an interval that no schedule supports': { sweepEvery: seconds(90) },
    'no interval': { sweepEvery: seconds(0) },
    'too long an interval': { sweepEvery: hours(2) },
    'no shard': { shards: 0 },
    'too many shards': { shards: 257 },
    'half a shard': { shards: 1.5 },
    'no attempt': { maxAttempts: 0 },
    'a hasty publish': { publishTimeout: millis(50) },
    'part of a day': { publishedRetention: hours(36) },
  };

  test('are refused, each with one problem', async () => {
    const refused = Object.entries(WRONG).map(([what, change]) => [
      what,
      ...relayProblems({ ...relay, ...change }),
    ]);
    expect(refused.filter(({ length }) => length !== 2)).toEqual([]);
    await expect(linesOf(refused)).toMatchFileSnapshot('__snapshots__/refused-relay-settings.txt');
  });

  test('work just above their limits', () => {
    const least = {
      streamLease: millis(12_001),
      claimLease: millis(12_001),
      sweepEvery: seconds(1),
      shards: 256,
    };
    expect(relayProblems({ ...relay, ...least })).toEqual([]);
  });
});

describe("a consumer's settings", () => {
  test('work by default', () => {
    expect(consumerProblems(consumer)).toEqual([]);
  });

  const WRONG: Readonly<Record<string, Partial<ConsumerSettings>>> = {
    'a batching window longer than those of Lambda': {
      batchingWindow: minutes(6),
      visibilityTimeout: minutes(10),
    },
    'a batching window that leaves too little of the visibility timeout': { batchingWindow: seconds(151) },
    'a last delay before the first': { retry: { maxAttempts: 10, first: minutes(2), longest: minutes(1) } },
    'a delay that SQS cannot hide a message for': {
      retry: { maxAttempts: 2, first: seconds(2), longest: hours(12) },
    },
    'a queue that deletes a message before its attempts are over': { queueRetention: days(5) },
    'a visibility timeout under the timeout': { visibilityTimeout: seconds(29), lease: seconds(20) },
    'a visibility timeout beyond SQS': {
      visibilityTimeout: hours(13),
      outageTolerance: hours(0),
      retry: { ...consumer.retry, maxAttempts: 1 },
    },
    'a lease too short to renew': { lease: seconds(2) },
    'no lease': { lease: seconds(0) },
    'a lease over the visibility timeout': { lease: seconds(181) },
    'an inbox that expires before the queues do': { inboxRetention: days(27) },
    'an inbox that expires before the archive does': { archive: days(30) },
    'a dead-letter queue that expires on arrival': { deadLetterRetention: days(1) },
    'a queue that keeps too long': { queueRetention: days(15) },
    'a timeout beyond Lambda': { timeout: minutes(16), visibilityTimeout: hours(2) },
    'a timeout beyond Lambda Managed Instances': {
      timeout: minutes(91),
      timeoutMax: minutes(90),
      visibilityTimeout: hours(2),
    },
    'no attempt': { retry: { maxAttempts: 0, first: seconds(2), longest: minutes(15) } },
    'a batch beyond one receive': { batchSize: 11 },
  };

  test('are refused, each with one problem', async () => {
    const refused = Object.entries(WRONG).map(([what, change]) => [
      what,
      ...consumerProblems({ ...consumer, ...change }),
    ]);
    expect(refused.filter(({ length }) => length !== 2)).toEqual([]);
    await expect(linesOf(refused)).toMatchFileSnapshot('__snapshots__/refused-consumer-settings.txt');
  });

  test('settings are refused with more receives than SQS allows', () => {
    const problems = consumerProblems({
      ...consumer,
      visibilityTimeout: seconds(30),
      outageTolerance: hours(9),
    });
    expect(problems).toContain(
      'retry.outageTolerance is 9 hours and queue.visibilityTimeout is 30 seconds, which takes 1105 receives. SQS allows at most 1000, ' +
        'and an outage uses one per visibility timeout. Raise queue.visibilityTimeout, or lower retry.outageTolerance or ' +
        'retry.maxAttempts.',
    );
  });

  test('work at their limits', () => {
    const edge = {
      lease: minutes(3),
      timeout: minutes(3),
      inboxRetention: days(28),
      deadLetterRetention: days(14),
    };
    expect(consumerProblems({ ...consumer, ...edge })).toEqual([]);
    expect(consumerProblems({ ...consumer, deadLetterRetention: hours(230) })).toEqual([]);
    expect(consumerProblems({ ...consumer, archive: days(7) })).toEqual([]);
  });
});

describe('the default retention of an inbox', () => {
  const queues = { queueRetention: days(14), deadLetterRetention: days(14) };

  test('inbox rows are kept for 35 days, or longer if queues and archive need it', () => {
    expect(defaultInboxRetention(queues).toDays()).toBe(35);
    expect(defaultInboxRetention({ ...queues, archive: days(7) }).toDays()).toBe(35);
    expect(defaultInboxRetention({ ...queues, archive: days(8) }).toDays()).toBe(36);
    expect(defaultInboxRetention({ ...queues, archive: days(365) }).toDays()).toBe(393);
  });

  test('always works', () => {
    for (const archive of [undefined, days(1), days(30), days(400)]) {
      const retentions = { queueRetention: hours(164), deadLetterRetention: hours(234), archive };
      const inboxRetention = defaultInboxRetention(retentions);
      expect(consumerProblems({ ...consumer, ...retentions, inboxRetention })).toEqual([]);
    }
  });
});

describe('an archive', () => {
  test('keeps events for whole days, or is absent', () => {
    expect(archiveProblems(undefined)).toEqual([]);
    expect(archiveProblems(days(30))).toEqual([]);
    expect(archiveProblems(hours(36))).toEqual([
      'archive is 1 day 12 hours, but must be a whole number of days, at least 1: EventBridge keeps archived events for ' +
        'whole days. Round it up to days, or omit it for no archive.',
    ]);
    expect(archiveProblems(days(0))).toEqual([expect.stringContaining('archive is 0 seconds, but must be')]);
  });
});

test('refusals have a code', () => {
  expect(() => refuse('It', ['it is wrong.'])).toThrow(
    expect.objectContaining({ code: 'BAD_SETTINGS', message: 'It has invalid settings: it is wrong.' }),
  );
  expect(() => refuse('It', [])).not.toThrow();
});

/** Each case, with its message below it. */
function linesOf(cases: readonly (readonly string[])[]): string {
  return cases.map((lines) => `${lines.join('\n  ')}\n`).join('\n');
}
