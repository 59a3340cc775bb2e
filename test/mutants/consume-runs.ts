import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The consumer: how a message is run, and what becomes of it. */
export const consumeRunMutants: readonly Mutant[] = [
  ...mutantsOf(
    'consume/consumer.ts',
    unit('consumer', 'consumer-leases', 'consumer-transactional', 'consumer-poison'),
    [
      {
        rule: 'a message is not begun when its function has too little time left',
        from: 'endsBy - clock.now() < START_MIN_MS',
        to: 'false',
      },
      {
        rule: 'a transactional message that comes again is claimed first',
        from: 'delivery.receives > 1 || inbox.tooOld(delivery.message)',
        to: 'inbox.tooOld(delivery.message)',
      },
      {
        rule: 'a transactional message that is too old is claimed first',
        from: 'delivery.receives > 1 || inbox.tooOld(delivery.message)',
        to: 'delivery.receives > 1',
      },
      {
        rule: 'a message is taken over after the others of its batch',
        from: 'await lane.runLast(first.attempts, () => receive(record, endsBy, true))',
        to: 'await receive(record, endsBy, true)',
      },
      {
        rule: 'a run without a claim is not counted as an attempt',
        from: 'delivery, takeOver, 1)',
        to: 'delivery, takeOver, 0)',
      },
    ],
  ),
  ...mutantsOf('consume/last-lane.ts', unit('consumer-leases'), [
    {
      rule: 'messages are taken over with the fewest attempts first',
      from: 'waiting.sort((a, b) => a.attempts - b.attempts)',
      to: 'waiting',
    },
  ]),
  ...mutantsOf(
    'consume/claimed-run.ts',
    unit('consumer-retries', 'consumer-leases', 'consumer', 'consumer-effects'),
    [
      {
        rule: 'a message whose last attempt never ended is rejected',
        from: 'claim.attempt > config.maxAttempts',
        to: 'false',
      },
      {
        rule: 'a message whose attempts are exhausted is rejected',
        from: 'claim.attempt >= config.maxAttempts',
        to: 'false',
      },
      {
        rule: 'a message has all of its attempts',
        from: 'claim.attempt >= config.maxAttempts',
        to: 'claim.attempt >= config.maxAttempts - 1',
      },
      {
        rule: 'a message is at its first receive only once',
        from: 'receives <= 1 + unclaimedRuns',
        to: 'true',
      },
      {
        rule: 'a message that ran out of time waits until its function is stopped',
        from: 'again(outcomes.untilMs(claim.endsBy), error)',
        to: 'again(0, error)',
      },
      {
        rule: 'a handler that says poison is not run again',
        from: 'if (isPoison(error)) return reject(delivery, claim, error);',
        to: '',
      },
      {
        rule: 'a handler that says already processed is done',
        from: 'if (isAlreadyProcessed(error)) return complete(delivery, claim, effects, undefined);',
        to: '',
      },
      {
        rule: 'a message whose effect may still be running waits for it',
        from: 'const afterMs = outcomes.untilMs(error.until);',
        to: 'const afterMs = 0;',
      },
    ],
  ),
  ...mutantsOf(
    'consume/leased-context.ts',
    unit('consumer-commits', 'consumer-effects', 'consumer-unawaited', 'consumer-signals'),
    [
      {
        rule: 'a message is committed once',
        from: "if (state.commit.kind !== 'none') throw afterCommit('ctx.commit');",
        to: '',
      },
      {
        rule: 'a commit that is under way stops a second one',
        from: "state.commit = { kind: 'running' };",
        to: '',
      },
      {
        rule: 'no effect is run after the commit',
        from: "if (state.commit.kind !== 'none') throw afterCommit(`ctx.once",
        to: 'if (false) throw afterCommit(`ctx.once',
      },
      {
        rule: 'nothing is committed while an effect may be running elsewhere',
        from: 'if (state.blocked !== undefined) throw state.blocked;',
        to: '',
      },
      {
        rule: 'only a refusal says that nothing was committed',
        from: "state.commit = refused ? { kind: 'none' }",
        to: "state.commit = true ? { kind: 'none' }",
      },
      {
        rule: 'what a handler left behind begins nothing more',
        from: 'if (!state.ended) return;',
        to: 'return;',
      },
    ],
  ),
  ...mutantsOf(
    'consume/leased-run.ts',
    unit(
      'consumer-time',
      'consumer-signals',
      'consumer-commits',
      'consumer-unawaited',
      'consumer-leases',
      'consumer-effects',
    ),
    [
      {
        rule: 'a batch is not answered while an effect is running',
        from: 'await effects.idle(); return',
        to: 'return',
      },
      {
        rule: 'a batch is answered before its function is stopped',
        from: 'claim.endsBy - RESPONSE_MARGIN_MS - clock.now()',
        to: 'claim.endsBy + RESPONSE_MARGIN_MS - clock.now()',
      },
      {
        rule: 'a message whose effect may be running elsewhere waits, whatever its handler makes of that',
        from: "if (state.blocked !== undefined) return { kind: 'blocked', error: state.blocked };",
        to: '',
      },
      {
        rule: 'a message is not settled without a commit whose outcome is unknown',
        from: "state.commit.kind === 'unknown' && end.kind",
        to: 'false && end.kind',
      },
      {
        rule: 'what failed and was not awaited fails the message',
        from: 'done && unheard.length > 0',
        to: 'false',
      },
      {
        rule: 'a heartbeat renews the lease',
        from: 'await inbox.renew(claim);',
        to: '',
      },
      {
        rule: 'a heartbeat hides the message',
        from: 'await queue.changeVisibility(receiptHandle, Math.max(1, Math.ceil(hiddenMs / 1_000)));',
        to: '',
      },
      {
        rule: 'a worker that has lost its message is told to stop',
        from: "if (state.commit.kind === 'none') stop.abort(error);",
        to: '',
      },
      {
        rule: 'a message is not hidden past the end of its function',
        from: 'Math.min(config.visibilityTimeoutMs, claim.endsBy + 1_000 - clock.now())',
        to: 'config.visibilityTimeoutMs',
      },
    ],
  ),
  ...mutantsOf('consume/message-outcome.ts', unit('consumer-time', 'consumer-leases', 'consumer-poison'), [
    {
      rule: 'a message that is held still waits until its function is stopped',
      from: 'delivery.receives > 1 ? refusal.endsBy : refusal.until',
      to: 'refusal.until',
    },
    {
      rule: 'a message that is held waits first for its lease',
      from: 'delivery.receives > 1 ? refusal.endsBy : refusal.until',
      to: 'refusal.endsBy',
    },
    {
      rule: 'a message that waits for a time comes after it',
      from: '/ 1_000) * 1_000 + 1_000;',
      to: '/ 1_000) * 1_000 - 1_000;',
    },
    {
      rule: 'a rejected message is shown at once, until its receives are spent',
      from: "again(0, new MailroomError(refusal.reason, 'The message was rejected'))",
      to: "again(900_000, new MailroomError(refusal.reason, 'The message was rejected'))",
    },
    {
      rule: 'poison is rejected also without a claim',
      from: 'if (isPoison(error)) { try',
      to: 'if (false) { try',
    },
  ]),
  ...mutantsOf('consume/transactional-run.ts', unit('consumer-transactional', 'consumer-time'), [
    {
      rule: 'a batch is not kept waiting by a transactional handler',
      from: 'remainingMs - RESPONSE_MARGIN_MS',
      to: 'remainingMs + RESPONSE_MARGIN_MS',
    },
    {
      rule: 'a transactional handler is run again on fresh reads only for conditions and conflicts',
      from: 'codes.every(',
      to: 'true || codes.every(',
    },
    {
      rule: 'a transactional handler is run again on fresh reads',
      from: 'attempt < CONDITION_TRIES',
      to: 'attempt < 1',
    },
  ]),
  ...mutantsOf('consume/message.ts', unit('consumer-poison', 'check-messages'), [
    {
      rule: 'a version that the consumer does not know is not handled',
      from: 'version > definition.version',
      to: 'false',
    },
    {
      rule: 'a payload is validated before its handler sees it',
      from: 'data: await validateData(definition, data)',
      to: 'data',
    },
    {
      rule: 'a message without an event id is unreadable',
      from: "if (!isEventId(eventId)) return 'eventId is no UUIDv7 in lower case';",
      to: '',
    },
  ]),
];
