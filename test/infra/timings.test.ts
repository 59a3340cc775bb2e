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
  bornLease: seconds(30),
  publishTimeout: seconds(5),
  claimLease: seconds(30),
  sweepEvery: minutes(1),
  maxAttempts: 10,
  publishedRetention: days(7),
};

const consumer: ConsumerSettings = {
  lease: seconds(30),
  timeout: seconds(30),
  visibilityTimeout: minutes(3),
  retry: { attempts: 10, first: seconds(2), longest: minutes(15) },
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

  const wrong: [string, Partial<RelaySettings>, string][] = [
    [
      'a born lease that freshness, publish and margin use up',
      { bornLease: seconds(12) },
      'bornLease is 12 seconds, but must be more than 12 seconds: a record counts as fresh for 5 seconds, one PutEvents ' +
        'call may take 5 seconds, and 2 seconds allow for clock differences. With less, the sweep would publish ' +
        'events that the stream relay is still publishing. Raise bornLease or lower publishTimeout.',
    ],
    [
      'a batching window that makes records late',
      { batchingWindow: seconds(4) },
      'batchingWindow is 4 seconds, but must be from 0 seconds to 3 seconds.',
    ],
    [
      'a batching window of part of a second',
      { batchingWindow: millis(500) },
      'batchingWindow is 500 millis, but must be whole seconds: Lambda has no finer windows. Round it.',
    ],
    [
      'a claim that a publish could outlast',
      { claimLease: seconds(12) },
      'claimLease is 12 seconds, but must be more than 12 seconds, twice the publish timeout plus 2 seconds for clock ' +
        'differences: no publish may start that could outlast its claim, and a publish that hangs must be detected ' +
        'in time. Raise claimLease or lower publishTimeout.',
    ],
    [
      'an interval that no schedule supports',
      { sweepEvery: seconds(90) },
      'sweepEvery is 1 minute 30 seconds, but must be from 1 second to under a minute (the sweep then loops inside ' +
        'its minute), or a whole number of minutes up to 1 hour: EventBridge runs a schedule at most once a minute. ' +
        'Round it to whole minutes.',
    ],
    ['no interval', { sweepEvery: seconds(0) }, 'sweepEvery is 0 seconds, but must be'],
    ['too long an interval', { sweepEvery: hours(2) }, 'sweepEvery is 2 hours, but must be'],
    [
      'no shard',
      { shards: 0 },
      'shards is 0, but must be a whole number from 1 to 256. The shard is one byte',
    ],
    ['too many shards', { shards: 257 }, 'shards is 257, but must be'],
    ['half a shard', { shards: 1.5 }, 'shards is 1.5, but must be'],
    ['no attempt', { maxAttempts: 0 }, 'maxAttempts is 0, but must be a whole number from 1 to 1000.'],
    [
      'a hasty publish',
      { publishTimeout: millis(50) },
      'publishTimeout is 50 millis, but must be from 100 millis',
    ],
    [
      'part of a day',
      { publishedRetention: hours(36) },
      'publishedRetention is 1 day 12 hours, but must be a whole',
    ],
  ];

  test.each(wrong)('settings are refused with %s', (_what, change, message) => {
    expect(relayProblems({ ...relay, ...change })).toEqual([expect.stringContaining(message)]);
  });

  test('work just above their limits', () => {
    const least = {
      bornLease: millis(12_001),
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

  const wrong: [string, Partial<ConsumerSettings>, string][] = [
    [
      'a batching window longer than those of Lambda',
      { batchingWindow: minutes(6), visibilityTimeout: minutes(10) },
      'batchingWindow is 6 minutes, but must be from 0 seconds to 5 minutes.',
    ],
    [
      'a batching window that leaves too little of the visibility timeout',
      { batchingWindow: seconds(151) },
      "batchingWindow is 2 minutes 31 seconds, but with the function's timeout, 30 seconds, it must fit into queueProps.visibilityTimeout, " +
        '3 minutes: a message is hidden from the start of its window. Lower batchingWindow or raise queueProps.visibilityTimeout.',
    ],
    [
      'a last delay before the first',
      { retry: { attempts: 10, first: minutes(2), longest: minutes(1) } },
      'retry.longest is 1 minute, but must be from 2 minutes to 11 hours. The delays start at retry.first. SQS hides',
    ],
    [
      'a delay that SQS cannot hide a message for',
      { retry: { attempts: 2, first: seconds(2), longest: hours(12) } },
      'retry.longest is 12 hours, but must be from 2 seconds to 11 hours. The delays start at retry.first. SQS hides ' +
        'a message for at most 12 hours, including the run of the function.',
    ],
    [
      'a queue that deletes a message before its attempts are over',
      { queueRetention: days(5) },
      'queueProps.retention is 5 days, but must be at least 6 days 13 hours, the time that a message may ' +
        'spend in the queue: a day of waits (RetryLater), all its attempts, up to 11 hours apart, and an outage. SQS deletes older messages before they reach the ' +
        'dead-letter queue.',
    ],
    [
      'a visibility timeout under the timeout',
      { visibilityTimeout: seconds(29), lease: seconds(20) },
      "queueProps.visibilityTimeout is 29 seconds, but must be at least the function's timeout, 30 seconds. Otherwise SQS " +
        'redelivers messages that the function is still processing, and Lambda refuses the mapping. Raise queueProps.visibilityTimeout (AWS advises ' +
        '6 times the timeout) or lower timeout.',
    ],
    [
      'a visibility timeout beyond SQS',
      { visibilityTimeout: hours(13), outageTolerance: hours(0), retry: { ...consumer.retry, attempts: 1 } },
      'queueProps.visibilityTimeout is 13 hours, but must be from 1 second to 12 hours. This is the range of SQS.',
    ],
    [
      'a lease too short to renew',
      { lease: seconds(2) },
      'lease is 2 seconds, but must be at least 3 seconds: it is renewed every third of its length, and renewing ' +
        'more than once a second only costs writes. Raise lease; the default is 30 seconds.',
    ],
    ['no lease', { lease: seconds(0) }, 'lease is 0 seconds, but must be at least 3 seconds'],
    [
      'a lease over the visibility timeout',
      { lease: seconds(181) },
      'lease is 3 minutes 1 second, but must be at most the visibility timeout, 3 minutes. Otherwise, after a crash, the ' +
        'message is redelivered while its lease is still valid, and each such receive is wasted. Lower ' +
        'lease or raise queueProps.visibilityTimeout.',
    ],
    [
      'an inbox that expires before the queues do',
      { inboxRetention: days(27) },
      'inboxRetention is 27 days, but must be at least queueProps.retention + queueProps.deadLetterRetention = 28 days: a message that ' +
        'is redelivered after its inbox row has expired could be processed twice. Raise inboxRetention or lower the ' +
        'retentions of the queues.',
    ],
    [
      'an inbox that expires before the archive does',
      { archive: days(30) },
      "inboxRetention is 35 days, but must be at least queueProps.retention + queueProps.deadLetterRetention + the bus's archive = 58 " +
        'days: an event replayed after its inbox row has expired would run again, so it is rejected as too old, and a new ' +
        'consumer could not receive the whole archive. Raise inboxRetention (or omit it), or lower the ' +
        "Mailroom's archive.",
    ],
    [
      'a dead-letter queue that expires on arrival',
      { deadLetterRetention: days(1) },
      "queueProps.deadLetterRetention is 1 day, but must be at least 9 days 13 hours: SQS counts a message's age from its first send, " +
        'it may spend 6 days 13 hours in the queue, and an operator needs 3 days to look at it. Raise queueProps.deadLetterRetention, ' +
        'or lower retry.attempts, outageTolerance or queueProps.visibilityTimeout.',
    ],
    [
      'a queue that keeps too long',
      { queueRetention: days(15) },
      'queueProps.retention is 15 days, but must be from 1 minute',
    ],
    [
      'a timeout beyond Lambda',
      { timeout: minutes(16), visibilityTimeout: hours(2) },
      'timeout is 16 minutes, but',
    ],
    [
      'no attempt',
      { retry: { attempts: 0, first: seconds(2), longest: minutes(15) } },
      'retry.attempts is 0, but must be a whole number from 1 to 100.',
    ],
    [
      'a batch beyond one receive',
      { batchSize: 11 },
      'batchSize is 11, but must be a whole number from 1 to 10.',
    ],
  ];

  test.each(wrong)('settings are refused with %s', (_what, change, message) => {
    expect(consumerProblems({ ...consumer, ...change })).toEqual([expect.stringContaining(message)]);
  });

  test('settings are refused with more receives than SQS allows', () => {
    const problems = consumerProblems({
      ...consumer,
      visibilityTimeout: seconds(30),
      outageTolerance: hours(9),
    });
    expect(problems).toContain(
      'outageTolerance is 9 hours and queueProps.visibilityTimeout is 30 seconds, which takes 1105 receives. SQS allows at most 1000, ' +
        'and an outage uses one per visibility timeout. Raise queueProps.visibilityTimeout, or lower outageTolerance or ' +
        'retry.attempts.',
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
