import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The consumer: how a message is run, and what becomes of it. */
export const consumeRunMutants: readonly Mutant[] = [
  ...mutantsOf(
    'consume/consumer.ts',
    unit('consumer', 'consumer-leases', 'consumer-transactional', 'consumer-poison'),
    [
      {
        rule: 'a message is not started when the function has too little time left',
        from: 'endsBy - clock.now() < START_MIN_MS',
        to: 'false',
      },
      {
        rule: 'a transactional message that was received before is claimed first',
        from: 'delivery.receives > 1 || inbox.tooOld(delivery.message)',
        to: 'inbox.tooOld(delivery.message)',
      },
      {
        rule: 'a transactional message that is too old is claimed first',
        from: 'delivery.receives > 1 || inbox.tooOld(delivery.message)',
        to: 'delivery.receives > 1',
      },
      {
        rule: 'a message is taken over after its neighbours',
        from: 'await lane.runLast(first.attempts, () => receive(record, endsBy, true))',
        to: 'await receive(record, endsBy, true)',
      },
      {
        rule: 'a run without a claim does not count as an attempt',
        from: 'delivery, takeOver, 1)',
        to: 'delivery, takeOver, 0)',
      },
    ],
  ),
  ...mutantsOf('consume/last-lane.ts', unit('consumer-leases'), [
    {
      rule: 'messages with fewer attempts are taken over first',
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
        rule: 'a message is rejected when its attempts are exhausted',
        from: 'claim.attempt >= config.maxAttempts',
        to: 'false',
      },
      {
        rule: 'a message gets all of its attempts',
        from: 'claim.attempt >= config.maxAttempts',
        to: 'claim.attempt >= config.maxAttempts - 1',
      },
      {
        rule: 'attempts start at 1 only at the first receive',
        from: 'receives <= 1 + unclaimedRuns',
        to: 'true',
      },
      {
        rule: 'a message that ran out of time waits until its function is stopped',
        from: 'again(outcomes.untilMs(claim.endsBy), error)',
        to: 'again(0, error)',
      },
      {
        rule: 'a message that its handler calls poison is rejected',
        from: 'if (isPoison(error)) return reject(delivery, claim, error);',
        to: '',
      },
      {
        rule: 'a message that its handler calls already processed is completed',
        from: 'if (isAlreadyProcessed(error)) return complete(delivery, claim, effects, undefined);',
        to: '',
      },
      {
        rule: 'effects may expire only once their message is PROCESSED',
        from: 'const refusal = await inbox.complete(claim, result);',
        to: 'await effects.expire(); const refusal = await inbox.complete(claim, result);',
        killers: unit('consumer-stored-effects'),
      },
      {
        rule: 'a message waits for an effect that may still be running',
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
        rule: 'a handler commits once',
        from: "if (state.commit.kind !== 'none') throw afterCommit('ctx.commit');",
        to: '',
      },
      {
        rule: 'a second commit is refused while the first is under way',
        from: "state.commit = { kind: 'running' };",
        to: '',
      },
      {
        rule: 'no effect starts after the commit',
        from: "if (state.commit.kind !== 'none') throw afterCommit(`ctx.once",
        to: 'if (false) throw afterCommit(`ctx.once',
      },
      {
        rule: 'nothing is committed while an effect may be running elsewhere',
        from: 'if (state.blocked !== undefined) throw state.blocked;',
        to: '',
      },
      {
        rule: 'only a refusal proves that nothing was committed',
        from: "state.commit = refused ? { kind: 'none' }",
        to: "state.commit = true ? { kind: 'none' }",
      },
      {
        rule: 'a handler that has ended starts nothing more',
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
        rule: 'a message waits for a running effect whatever its handler does',
        from: "if (state.blocked !== undefined) return { kind: 'blocked', error: state.blocked };",
        to: '',
      },
      {
        rule: 'a message is not settled while the outcome of its commit is unknown',
        from: "state.commit.kind === 'unknown' && end.kind",
        to: 'false && end.kind',
      },
      {
        rule: 'an un-awaited failure fails the message',
        from: 'done && unheard.length > 0',
        to: 'false',
      },
      {
        rule: 'a heartbeat renews the lease',
        from: 'await inbox.renew(claim);',
        to: '',
      },
      {
        rule: 'a heartbeat extends the visibility timeout',
        from: 'await queue.changeVisibility(receiptHandle, Math.max(1, Math.ceil(hiddenMs / 1_000)));',
        to: '',
      },
      {
        rule: 'a worker that has lost its message is told to stop',
        from: "if (state.commit.kind === 'none') stop.abort(error);",
        to: '',
      },
      {
        rule: 'a message is hidden no longer than until its function is stopped',
        from: 'Math.min(config.visibilityTimeoutMs, claim.endsBy + 1_000 - clock.now())',
        to: 'config.visibilityTimeoutMs',
      },
    ],
  ),
  ...mutantsOf('consume/message-outcome.ts', unit('consumer-time', 'consumer-leases', 'consumer-poison'), [
    {
      rule: 'a message that is leased for a second time waits until its function is stopped',
      from: 'delivery.receives > 1 ? refusal.endsBy : refusal.until',
      to: 'refusal.until',
    },
    {
      rule: 'a message that is leased for the first time waits for the lease',
      from: 'delivery.receives > 1 ? refusal.endsBy : refusal.until',
      to: 'refusal.endsBy',
    },
    {
      rule: 'a message that waits is shown after the time that it waits for',
      from: '/ 1_000) * 1_000 + 1_000;',
      to: '/ 1_000) * 1_000 - 1_000;',
    },
    {
      rule: 'a rejected message is shown at once',
      from: "again(0, new MailroomError(refusal.reason, 'The message was rejected'))",
      to: "again(900_000, new MailroomError(refusal.reason, 'The message was rejected'))",
    },
    {
      rule: 'poison is rejected without a claim',
      from: 'if (isPoison(error)) { try',
      to: 'if (false) { try',
    },
  ]),
  ...mutantsOf('consume/transactional-run.ts', unit('consumer-transactional', 'consumer-time'), [
    {
      rule: 'a transactional handler does not delay the answer of its batch',
      from: 'remainingMs - RESPONSE_MARGIN_MS',
      to: 'remainingMs + RESPONSE_MARGIN_MS',
    },
    {
      rule: 'a transactional handler is rerun only after failed conditions and conflicts',
      from: 'codes.every(',
      to: 'true || codes.every(',
    },
    {
      rule: 'a transactional handler is rerun on fresh reads',
      from: 'attempt < CONDITION_TRIES',
      to: 'attempt < 1',
    },
  ]),
  ...mutantsOf('consume/message.ts', unit('consumer-poison', 'check-messages'), [
    {
      rule: "a version newer than the consumer's is not handled",
      from: 'version > definition.version',
      to: 'false',
    },
    {
      rule: 'a payload is validated before the handler gets it',
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
