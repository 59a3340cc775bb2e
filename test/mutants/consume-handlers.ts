import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The consumer: a handler under its claim. */
export const consumeHandlerMutants: readonly Mutant[] = [
  ...mutantsOf(
    'consume/leased-context.ts',
    unit(
      'consumer-ends',
      'consumer-commits',
      'consumer-effects',
      'consumer-unawaited',
      'consumer-signals',
      'consumer-outages',
      'consumer-crowd',
    ),
    [
      {
        rule: 'a message is committed once',
        from: "if (run.commit.kind !== 'none') throw afterCommit('ctx.commit');",
        to: '',
      },
      {
        rule: 'a commit that is under way stops a second one',
        from: "run.commit = { kind: 'running' };",
        to: '',
      },
      {
        rule: 'no effect is run after the commit',
        from: "if (run.commit.kind !== 'none') throw afterCommit(`ctx.once",
        to: 'if (false) throw afterCommit(`ctx.once',
      },
      {
        rule: 'nothing is committed while an effect may be running elsewhere',
        from: 'if (run.blocked !== undefined) throw run.blocked;',
        to: '',
      },
      {
        rule: 'only a refusal says that nothing was committed',
        from: "run.commit = refused ? { kind: 'none' }",
        to: "run.commit = true ? { kind: 'none' }",
      },
      {
        rule: 'what a handler left behind begins nothing more',
        from: 'if (!ended) return;',
        to: 'return;',
      },
      {
        rule: 'an outage in an effect counts no attempt',
        from: 'else if (thrown?.error !== error && isOutage(error)) run.outage = { error };',
        to: '',
      },
      {
        rule: "a provider's failure is no outage of the table",
        from: 'thrown?.error !== error && isOutage(error)',
        to: 'isOutage(error)',
      },
      {
        rule: 'an outage in a commit counts no attempt',
        from: 'if (sent && isOutageOf(actions, config.tableName, error)) run.outage = { error };',
        to: '',
      },
      {
        rule: 'a handler that waits for the table in a commit when its time is up has been robbed of it',
        from: 'sent = true; run.waiting += 1;',
        to: 'sent = true;',
      },
      {
        rule: 'a handler waits for its provider, and not for the table, while its effect runs',
        from: 'const watched = async (idempotencyKey: string) => { run.waiting -= 1;',
        to: 'const watched = async (idempotencyKey: string) => {',
      },
      {
        rule: 'a handler that waits for the table to start an effect when its time is up has been robbed of it',
        from: 'run.waiting += 1; try { return await runOnce(run.effects, name, watched);',
        to: 'try { return await runOnce(run.effects, name, watched);',
      },
      {
        rule: 'a handler that waits for the table to store a result when its time is up has been robbed of it',
        from: 'finally { run.waiting += 1; }',
        to: 'finally { run.waiting += 0; }',
      },
    ],
  ),
  ...mutantsOf(
    'consume/leased-run.ts',
    unit(
      'consumer-ends',
      'consumer-time',
      'consumer-signals',
      'consumer-commits',
      'consumer-unawaited',
      'consumer-leases',
      'consumer-effects',
      'consumer-outages',
      'consumer-turns',
      'consumer-crowd',
    ),
    [
      {
        rule: 'a batch is not answered while an effect is running',
        from: 'await effectsIdle(effects); return',
        to: 'return',
      },
      {
        rule: 'a handler that runs out of time says so on its row',
        from: 'await sayOutOfTime(run, robbed);',
        to: '',
      },
      {
        rule: 'a handler that began late was robbed of its time',
        from: 'robbed = late || run.waiting > 0;',
        to: 'robbed = run.waiting > 0;',
      },
      {
        rule: 'a handler that waits for the table when its time is up was robbed of its time',
        from: 'robbed = late || run.waiting > 0;',
        to: 'robbed = late;',
      },
      {
        rule: 'a handler that failed in an outage counts no attempt',
        from: "if (outage !== undefined) return { kind: 'outage', error: outage.error };",
        to: '',
      },
      {
        rule: 'a handler that was robbed of its time and cut off counts no attempt',
        from: "cutOff.robbed ? 'outage' : 'cut-off'",
        to: "'cut-off'",
      },
      {
        rule: 'a handler that ended because its time was up is counted by another rule than one that failed',
        from: "cutOff.robbed ? 'outage' : 'cut-off'",
        to: "cutOff.robbed ? 'outage' : 'threw'",
      },
      {
        rule: 'an outage does not save what its handler calls poison',
        from: "end.kind !== 'threw' || isPoison(end.error) || isMailroomError(end.error, 'ALREADY_PROCESSED')",
        to: "end.kind !== 'threw' || isMailroomError(end.error, 'ALREADY_PROCESSED')",
      },
      {
        rule: 'an outage does not undo what its handler calls processed',
        from: "end.kind !== 'threw' || isPoison(end.error) || isMailroomError(end.error, 'ALREADY_PROCESSED')",
        to: "end.kind !== 'threw' || isPoison(end.error)",
      },
      {
        rule: 'the mark of a handler that ran out of time does not hold up the answer',
        from: 'await withDeadline(ctx.clock, MARK_MAX_MS, marked, () => {});',
        to: 'await marked;',
      },
      {
        rule: 'a batch is answered before its function is stopped',
        from: 'claim.endsBy - RESPONSE_MARGIN_MS - clock.now()',
        to: 'claim.endsBy + RESPONSE_MARGIN_MS - clock.now()',
      },
      {
        rule: 'a message whose effect may be running elsewhere waits, whatever its handler makes of that',
        from: "if (blocked !== undefined) return { kind: 'blocked', error: blocked };",
        to: '',
      },
      {
        rule: 'a message is not settled without a commit whose outcome is unknown',
        from: "commit.kind === 'unknown' && end.kind",
        to: 'false && end.kind',
      },
      {
        rule: 'what failed and was not awaited fails the message',
        from: 'done && unheard.length > 0',
        to: 'false',
      },
      {
        rule: 'a renewal extends the lease',
        from: 'await renewLease(inbox, claim);',
        to: '',
      },
      {
        rule: 'a renewal hides the message',
        from: 'await queue.changeVisibility(receiptHandle, Math.max(1, Math.ceil(hiddenMs / 1_000)));',
        to: '',
      },
      {
        rule: 'a worker that has lost its message is told to stop',
        from: "if (run.commit.kind === 'none') stop.abort(error);",
        to: '',
      },
      {
        rule: 'a message is not hidden past the end of its function',
        from: 'Math.min(config.visibilityTimeoutMs, claim.endsBy + 1_000 - clock.now())',
        to: 'config.visibilityTimeoutMs',
      },
    ],
  ),
];
