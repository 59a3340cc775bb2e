import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The consumer: how a message is run under its claim. */
export const consumeRunMutants: readonly Mutant[] = [
  ...mutantsOf(
    'consume/claimed-run.ts',
    unit(
      'claimed-run',
      'leased-run',
      'consumer-leases',
      'consumer',
      'consumer-effects',
      'consumer-outages',
      'consumer-schedule',
      'consumer-turns',
      'consumer-crowd',
      'leased-context',
      'transactional-run',
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
      {
        rule: 'a message that met an outage records on its row when it becomes visible again',
        from: 'setFailed(claimed, outcome.afterMs, write',
        to: 'setFailed(claimed, 0, write',
      },
      {
        rule: 'a message that failed records on its row when it becomes visible again',
        from: 'const retryAt = clock.now() + afterMs;',
        to: 'const retryAt = clock.now();',
      },
      {
        rule: 'a message that was cut off records on its row when it becomes visible again',
        from: 'return setFailed(claimed, afterMs, write, () => reportFailed(claimed, afterMs, error));',
        to: 'return setFailed(claimed, 0, write, () => reportFailed(claimed, afterMs, error));',
      },
      {
        rule: 'a message that waits for an effect records on its row when it becomes visible again',
        from: 'releaseMessage(inbox, claim, clock.now() + afterMs)',
        to: 'releaseMessage(inbox, claim, clock.now())',
        killers: unit('claimed-run'),
      },
      {
        rule: 'a takeover is counted',
        from: "if (claim.takenOver) telemetry.count('LeasesExpired');",
        to: '',
      },
      {
        rule: 'a claim that is not a takeover is not counted as one',
        from: 'if (claim.takenOver) telemetry.count',
        to: 'telemetry.count',
      },
      {
        rule: 'effects in doubt are reported by the next claim',
        from: 'reportEffectsInDoubt(claimed, claim);',
        to: '',
        killers: unit('consumer-stored-effects'),
      },
      {
        rule: 'a message is noticed at its fourth attempt',
        from: 'const ATTEMPTS_UNNOTICED = 3;',
        to: 'const ATTEMPTS_UNNOTICED = 4;',
        killers: unit('claimed-run'),
      },
      {
        rule: 'a message is not noticed before its fourth attempt',
        from: 'const ATTEMPTS_UNNOTICED = 3;',
        to: 'const ATTEMPTS_UNNOTICED = 2;',
        killers: unit('claimed-run'),
      },
      {
        rule: 'a message whose event cannot be read is rejected under its claim',
        from: "if ('problem' in event) return reject(claimed, event.problem);",
        to: "if ('problem' in event) throw event.problem;",
        killers: unit('claimed-run', 'consumer-poison'),
      },
      {
        rule: 'a message that ran out of time waits until its function is stopped by every clock',
        from: 'untilMs(claimed, claim.endsBy + CLOCK_SKEW_MS)',
        to: 'untilMs(claimed, claim.endsBy)',
        killers: unit('leased-run', 'consumer', 'transactional-run'),
      },
      {
        rule: 'a message that ran out of time is logged',
        from: "logFailure(claimed, 'A handler ran out of time', error);",
        to: '',
      },
      {
        rule: 'abandoned effects are reported when a message is processed',
        from: 'if (wholeRun) reportUnstableEffects(claimed.effects);',
        to: '',
        killers: unit('consumer-stored-effects'),
      },
      {
        rule: 'a handler that ended early has not abandoned its effects',
        from: 'if (wholeRun) reportUnstableEffects(claimed.effects);',
        to: 'reportUnstableEffects(claimed.effects);',
        killers: unit('consumer-stored-effects'),
      },
      {
        rule: 'a failed message has a hint',
        from: 'await putFailedHint(claimed, claim.message.eventId, retryAt, claim.endsBy);',
        to: '',
        killers: unit('claimed-run'),
      },
      {
        rule: 'the hint of a message that failed before ends when it is processed',
        from: 'const outcome = reportProcessed(claimed); await removeHint(claimed);',
        to: 'const outcome = reportProcessed(claimed);',
        killers: unit('claimed-run'),
      },
      {
        rule: 'the hint of a message that failed before ends when it is rejected',
        from: 'await removeHint(claimed); return reportRejected',
        to: 'return reportRejected',
        killers: unit('claimed-run'),
      },
      {
        rule: 'a message that never failed costs no removal of a hint',
        from: 'if (claim.lastError !== undefined) await',
        to: 'await',
        killers: unit('claimed-run'),
      },
      {
        rule: 'a message whose uncounted attempt failed has a hint to remove',
        from: 'if (claim.lastError !== undefined) await',
        to: 'if (claim.attempt > 1) await',
        killers: unit('claimed-run'),
      },
      {
        rule: 'a worker that has lost its message reports that',
        from: 'return refusal && fenceRefused(claimed, refusal);',
        to: 'return undefined;',
        killers: unit('leased-context'),
      },
      {
        rule: 'attempts that are not counted delay a message as two at most',
        from: 'Math.min(unfinished, ALONE_FROM)',
        to: 'unfinished',
      },
      {
        rule: 'a message that waits for an effect is counted as leased',
        from: "claimed.telemetry.count('MessagesLeased');",
        to: '',
        killers: unit('claimed-run'),
      },
      {
        rule: 'the end of a claim is written again about every two seconds of an outage at least',
        from: 'backoffMs(attempt, 200, 2_000, random)',
        to: 'backoffMs(attempt, 200, 20_000, random)',
      },
      {
        rule: 'a table that throttles is not asked every few milliseconds to end a claim',
        from: 'backoffMs(attempt, 200, 2_000, random)',
        to: 'backoffMs(attempt, 20, 20, random)',
      },
      {
        rule: 'the end of a claim leaves time for the response twice over',
        from: 'claim.endsBy - 2 * RESPONSE_MARGIN_MS',
        to: 'claim.endsBy',
      },
    ],
  ),
];
