import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The consumer: how a message is run under its claim. */
export const consumeRunMutants: readonly Mutant[] = [
  ...mutantsOf(
    'consume/claimed-run.ts',
    unit(
      'consumer-ends',
      'consumer-retries',
      'consumer-leases',
      'consumer',
      'consumer-effects',
      'consumer-outages',
      'consumer-schedule',
      'consumer-turns',
      'consumer-crowd',
    ),
    [
      {
        rule: 'a message whose last attempt never ended is rejected',
        from: 'claim.attempt > config.maxAttempts',
        to: 'false',
      },
      {
        rule: 'a message whose attempts are exhausted is rejected',
        from: 'if (claim.attempt >= config.maxAttempts) return reject',
        to: 'if (false) return reject',
      },
      {
        rule: 'a message has all of its attempts',
        from: 'if (claim.attempt >= config.maxAttempts) return reject',
        to: 'if (claim.attempt >= config.maxAttempts - 1) return reject',
      },
      {
        rule: 'a message that was cut off on its last attempt is rejected only if it ran alone',
        from: 'if (claim.unfinished >= ALONE_FROM && claim.attempt >= config.maxAttempts)',
        to: 'if (claim.attempt >= config.maxAttempts)',
      },
      {
        rule: 'a message that was cut off alone on its last attempt is rejected',
        from: 'if (claim.unfinished >= ALONE_FROM && claim.attempt >= config.maxAttempts)',
        to: 'if (false)',
      },
      {
        rule: 'attempts that are not counted spread over the retry schedule',
        from: 'retryAfterMs(claimed, attempt + Math.min(unfinished, ALONE_FROM))',
        to: 'retryAfterMs(claimed, attempt)',
      },
      {
        rule: 'a handler that asks for a delay is given it under a claim, too',
        from: 'retryAfterMs(claimed, claim.attempt, error)',
        to: 'retryAfterMs(claimed, claim.attempt)',
      },
      {
        rule: 'what a handler that asks for a delay names as the cause is the last error',
        from: "isMailroomError(error, 'RETRY_LATER') ? (error.cause ?? error) : error",
        to: 'error',
      },
      {
        rule: 'an outage takes its claim back',
        from: 'releaseMessage(inbox, claim, retryAt, error)',
        to: 'failMessage(inbox, claim, error, retryAt)',
      },
      {
        rule: 'the end of a claim is written again while the table cannot be reached',
        from: 'if (!isOutage(error) || clock.now() + pauseMs > lastTryAt) throw error;',
        to: 'throw error;',
      },
      {
        rule: 'the end of a claim is written again only while the batch can be answered in time',
        from: 'Math.min(clock.now() + SETTLE_MAX_MS, claim.endsBy - 2 * RESPONSE_MARGIN_MS)',
        to: 'clock.now() + SETTLE_MAX_MS',
      },
      {
        rule: 'the others of a batch do not wait for long until the end of a claim is written',
        from: 'Math.min(clock.now() + SETTLE_MAX_MS, claim.endsBy - 2 * RESPONSE_MARGIN_MS)',
        to: 'claim.endsBy - 2 * RESPONSE_MARGIN_MS',
      },
      {
        rule: 'what the table refuses for good is not written again',
        from: '!isOutage(error) || clock.now() + pauseMs > lastTryAt',
        to: 'clock.now() + pauseMs > lastTryAt',
      },
      {
        rule: 'a message is at its first receive only once',
        from: 'receives <= 1 + unclaimedRuns',
        to: 'true',
      },
      {
        rule: 'a message that ran out of time waits until its function is stopped',
        from: 'again(Math.max(stoppedMs, unfinishedAfterMs(claimed)), error)',
        to: 'again(unfinishedAfterMs(claimed), error)',
      },
      {
        rule: 'a message that ran out of time waits as after a failure',
        from: 'again(Math.max(stoppedMs, unfinishedAfterMs(claimed)), error)',
        to: 'again(stoppedMs, error)',
      },
      {
        rule: 'a message of which the table took the time waits as in an outage',
        from: 'Math.max(stoppedMs, reportOutage(claimed, error).afterMs)',
        to: 'stoppedMs',
      },
      {
        rule: 'a message of which the table took the time waits until its function is stopped',
        from: 'Math.max(stoppedMs, reportOutage(claimed, error).afterMs)',
        to: 'reportOutage(claimed, error).afterMs',
        equivalent:
          'An outage is waited out for 48 seconds at least, and the function is stopped within a second of that moment.',
      },
      {
        rule: 'a handler that says poison is not run again',
        from: 'if (isPoison(error)) return reject(claimed, error);',
        to: '',
      },
      {
        rule: 'a handler that says already processed is done',
        from: "if (isMailroomError(error, 'ALREADY_PROCESSED')) return complete(claimed, undefined, false);",
        to: '',
      },
      {
        rule: 'a message whose effect may still be running waits for it',
        from: 'const afterMs = untilMs(claimed, until);',
        to: 'const afterMs = 0;',
      },
    ],
  ),
];
