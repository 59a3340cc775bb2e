import { Duration } from 'aws-cdk-lib';
import { describe, expect, it } from 'vitest';
import { QUEUE_RETENTION_MAX } from '../../lib/checks/retentions.ts';
import { BATCH_SIZE_MAX, consumerProblems, relayProblems } from '../../lib/checks/timings.ts';
import { CONSUMER_TIMINGS, RELAY_TIMINGS } from './timings.ts';

const relay = {
  shards: 8,
  maxAttempts: 10,
  publishedRetention: Duration.days(7),
  streamLease: Duration.millis(RELAY_TIMINGS.bornLeaseMs),
  publishTimeout: Duration.millis(RELAY_TIMINGS.publishTimeoutMs),
  claimLease: Duration.millis(RELAY_TIMINGS.claimLeaseMs),
  sweepEvery: Duration.millis(RELAY_TIMINGS.sweepEveryMs),
};

const consumer = {
  retry: { maxAttempts: 10, first: Duration.seconds(2), longest: Duration.minutes(15) },
  outageTolerance: Duration.minutes(5),
  batchSize: BATCH_SIZE_MAX,
  queueRetention: QUEUE_RETENTION_MAX,
  deadLetterRetention: QUEUE_RETENTION_MAX,
  inboxRetention: Duration.days(35),
  timeout: Duration.seconds(CONSUMER_TIMINGS.timeoutS),
  timeoutMax: Duration.minutes(15),
  lease: Duration.millis(CONSUMER_TIMINGS.leaseMs),
  visibilityTimeout: Duration.seconds(CONSUMER_TIMINGS.visibilityTimeoutS),
};

describe('the shorter timings of the chaos scenarios', () => {
  it('pass the checks that the constructs make at synth', () => {
    expect(relayProblems(relay)).toEqual([]);
    expect(consumerProblems(consumer)).toEqual([]);
  });

  it('are as short as the checks allow with such a publish timeout', () => {
    expect(relayProblems({ ...relay, streamLease: Duration.seconds(17) })).not.toEqual([]);
    expect(relayProblems({ ...relay, claimLease: Duration.seconds(22) })).not.toEqual([]);
  });
});
