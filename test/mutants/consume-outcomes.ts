import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The consumer: what becomes of a message. */
export const consumeOutcomeMutants: readonly Mutant[] = [
  ...mutantsOf(
    'consume/message-outcome.ts',
    unit(
      'message-outcome',
      'leased-run',
      'consumer',
      'transactional-run',
      'consumer-leases',
      'consumer-poison',
      'claimed-run',
      'inbox-history',
    ),
    [
      {
        rule: 'a message that is held still waits until its function is stopped',
        from: 'received.delivery.receives > 1 ? refusal.endsBy : refusal.until',
        to: 'refusal.until',
      },
      {
        rule: 'a message that is held waits first for its lease',
        from: 'received.delivery.receives > 1 ? refusal.endsBy : refusal.until',
        to: 'refusal.endsBy',
      },
      {
        rule: 'a message that waits for a time comes after it',
        from: 'wholeSeconds(Math.max(0, time - clock.now())) + 1_000',
        to: 'wholeSeconds(Math.max(0, time - clock.now())) - 1_000',
      },
      {
        rule: 'a rejected message is shown at once, until its receives are spent',
        from: "again(0, new MailroomError(refusal.reason, 'The message was rejected'))",
        to: "again(900_000, new MailroomError(refusal.reason, 'The message was rejected'))",
      },
      {
        rule: 'poison is rejected also without a claim',
        from: 'if (isPoison(error)) return rejectAsPoison(received, error);',
        to: '',
      },
      {
        rule: 'a handler that asks for a delay is given it',
        from: "if (isMailroomError(error, 'RETRY_LATER')) return wholeSeconds(error.retryAfterMs);",
        to: '',
        killers: unit('consumer-schedule'),
      },
      {
        rule: 'a message that failed is shown again in whole seconds, as its row says',
        from: 'Math.ceil(ms / 1_000) * 1_000',
        to: 'ms',
        killers: unit('claimed-run', 'leased-run'),
      },
      {
        rule: 'a message that is too old is rejected',
        from: 'return rejectAsPoison(received, poison(TOO_OLD, refusal.why));',
        to: 'return again(0, poison(TOO_OLD, refusal.why));',
      },
      {
        rule: 'a row whose status is unknown makes its message wait as in an outage',
        from: "case 'unreadable': return reportOutage(",
        to: "case 'unreadable': return rejectAsPoison(",
      },
      {
        rule: 'a heartbeat is not counted as a processed message',
        from: 'if (deliversHeartbeat(delivery)) return',
        to: 'if (false) return',
        killers: unit('consumer'),
      },
      {
        rule: 'a processed message is counted',
        from: "telemetry.count('MessagesProcessed');",
        to: '',
      },
      {
        rule: 'the latency of a Mailroom event counts from its creation',
        from: 'isEventId(eventId) ? eventIdTime(eventId) :',
        to: '',
      },
      {
        rule: 'the latency of a foreign event counts from its arrival',
        from: 'isForeignEventId(eventId) ? sentAt : undefined',
        to: 'undefined',
      },
      {
        rule: 'a rejected message is counted',
        from: "received.telemetry.count('MessagesRejected');",
        to: '',
      },
      {
        rule: 'a message that was just rejected is shown at once',
        from: 'return again(0, error); // the row',
        to: 'return again(900_000, error); // the row',
      },
      {
        rule: 'a failed message is counted',
        from: "if (!chosen) received.telemetry.count('MessagesFailed');",
        to: '',
      },
      {
        rule: 'a handler that asks for a delay has not failed',
        from: 'if (!chosen) received.telemetry.count',
        to: 'received.telemetry.count',
      },
      {
        rule: 'an outage is counted',
        from: "received.telemetry.count('TableFailures');",
        to: '',
      },
      {
        rule: 'an outage is waited out by the number of receives',
        from: 'outageDelayMs(received.delivery.receives, ',
        to: 'outageDelayMs(1, ',
      },
      {
        rule: 'a message that its function has no time for waits as in an outage',
        from: 'wholeSeconds(outageDelayMs(receives, fraction(random)))',
        to: '0',
      },
      {
        rule: 'a message that its function has no time for waits longer at each receive',
        from: 'wholeSeconds(outageDelayMs(receives, fraction(random)))',
        to: 'wholeSeconds(outageDelayMs(1, fraction(random)))',
      },
      {
        rule: 'a message that must run alone waits for its turn',
        from: 'wholeSeconds(suspectDelayMs(receives, fraction(random)))',
        to: '0',
      },
      {
        rule: 'a message that must run alone waits longer at each receive',
        from: 'suspectDelayMs(receives, fraction(random))',
        to: 'suspectDelayMs(1, fraction(random))',
      },
      {
        rule: 'a message that makes room is shown at once',
        from: 'return again(0, madeRoom());',
        to: 'return again(900_000, madeRoom());',
      },
      {
        rule: 'the receives of a message without a claim are its attempts',
        from: 'retryAfterMs(received, received.delivery.receives, error)',
        to: 'retryAfterMs(received, 1, error)',
      },
      {
        rule: 'poison that another worker settled meanwhile is not reported as rejected',
        from: "if (refusal.status !== 'rejected') return refused(received, refusal);",
        to: '',
      },
      {
        rule: 'poison at its first receive costs one write',
        from: 'if (receives > 1) await removeFailedHint',
        to: 'await removeFailedHint',
      },
      {
        rule: 'the hint of a message that failed before ends when it is rejected as poison',
        from: 'if (receives > 1) await removeFailedHint(received, message.eventId, endsBy);',
        to: '',
      },
      {
        rule: 'a duplicate is counted',
        from: "received.telemetry.count('MessagesDuplicate');",
        to: '',
      },
      {
        rule: 'a duplicate is done',
        from: "received.span.set(OUTCOME, 'duplicate' satisfies SpanOutcome); return { kind: 'done' };",
        to: 'return again(0, new Error());',
      },
      {
        rule: 'a suspect that cannot be claimed waits for its turn',
        from: 'return waitToRunAlone(received);',
        to: 'return again(0, new Error());',
      },
      {
        rule: 'a message that another worker holds is counted',
        from: "received.telemetry.count('MessagesLeased');",
        to: '',
      },
      {
        rule: 'a refused end of a claim is counted',
        from: "received.telemetry.count('FenceRefused');",
        to: '',
      },
      {
        rule: 'a refused end of a claim is logged',
        from: "received.telemetry.log.warn('A worker finished",
        to: "void ('A worker finished",
      },
      {
        rule: 'the delay after a failure grows with its attempts',
        from: 'retryDelayMs(attempt, config,',
        to: 'retryDelayMs(1, config,',
      },
      {
        rule: 'the delay after a failure is random',
        from: 'config, fraction(random))',
        to: 'config, 0)',
      },
      {
        rule: 'the delay in an outage is random',
        from: 'outageDelayMs(received.delivery.receives, fraction(received.random))',
        to: 'outageDelayMs(received.delivery.receives, 0)',
      },
      {
        rule: 'a message that waits for a time in the past comes at once',
        from: 'wholeSeconds(Math.max(0, time - clock.now()))',
        to: 'wholeSeconds(time - clock.now())',
      },
      {
        rule: 'a message that waits for a time comes a second after it',
        from: 'clock.now())) + 1_000',
        to: 'clock.now())) + 0',
      },
      {
        rule: 'a failure is logged',
        from: 'telemetry.log.error(what, { error: error as Error });',
        to: '',
      },
      {
        rule: 'a failure marks the span of its message',
        from: "if (outcome !== 'retry-later') span.fail(error);",
        to: '',
      },
      {
        rule: 'a handler that asks for a delay does not fail the span of its message',
        from: "if (outcome !== 'retry-later') span.fail(error);",
        to: 'span.fail(error);',
      },
      {
        rule: 'a rejection names its attempts in the singular and the plural',
        from: "attempts === 1 ? 'attempt' : 'attempts'",
        to: "'attempts'",
      },
      {
        rule: 'a rejection names the code of the last error',
        from: ': `${errorCode(error)}: ${errorMessage(error, Number.POSITIVE_INFINITY)}`;',
        to: ': errorMessage(error, Number.POSITIVE_INFINITY);',
      },
      {
        rule: 'a rejection for an error without a code does not name a code',
        from: "errorCode(error) === 'UNKNOWN'",
        to: 'false',
      },
      {
        rule: 'redaction sees the whole text of a coded last error',
        from: ': `${errorCode(error)}: ${errorMessage(error, Number.POSITIVE_INFINITY)}`;',
        to: ': `${errorCode(error)}: ${errorMessage(error)}`;',
      },
      {
        rule: 'redaction sees the whole text of another last error',
        from: '? errorMessage(error, Number.POSITIVE_INFINITY) :',
        to: '? errorMessage(error) :',
      },
      {
        rule: 'a delay is rounded up',
        from: 'Math.ceil(ms / 1_000) * 1_000',
        to: 'Math.floor(ms / 1_000) * 1_000',
      },
    ],
  ),
];
