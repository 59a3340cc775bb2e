import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The consumer: one run of a leased handler. */
export const consumeLeasedRunMutants: readonly Mutant[] = [
  ...mutantsOf(
    'consume/leased-run.ts',
    unit(
      'claimed-run',
      'leased-run',
      'consumer',
      'transactional-run',
      'leased-context',
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
      {
        rule: 'a handler that starts within two seconds was not delayed',
        from: 'const LATE_MS = 2_000;',
        to: 'const LATE_MS = 1_999;',
      },
      {
        rule: 'a handler that starts after more than two seconds was delayed',
        from: 'const LATE_MS = 2_000;',
        to: 'const LATE_MS = 2_001;',
      },
      {
        rule: 'the mark of a handler that ran out of time leaves time for the response',
        from: 'const MARK_MAX_MS = RESPONSE_MARGIN_MS / 2;',
        to: 'const MARK_MAX_MS = RESPONSE_MARGIN_MS * 2;',
      },
      {
        rule: 'a hanging renewal delays the end of a claim by a second at most',
        from: 'Math.min(LAST_RENEWAL_MAX_MS, (claim.endsBy - clock.now()) / 4)',
        to: '(claim.endsBy - clock.now()) / 4',
      },
      {
        rule: 'a hanging renewal delays the end of a claim by a quarter of the time left at most',
        from: 'Math.min(LAST_RENEWAL_MAX_MS, (claim.endsBy - clock.now()) / 4)',
        to: 'LAST_RENEWAL_MAX_MS',
      },
      {
        rule: 'a renewal in progress is waited for',
        from: 'const LAST_RENEWAL_MAX_MS = 1_000;',
        to: 'const LAST_RENEWAL_MAX_MS = 0;',
      },
      {
        rule: 'the renewals end with their run',
        from: 'over.abort(); run.ended',
        to: 'run.ended',
      },
      {
        rule: 'a handler that was cut off starts nothing more',
        from: 'over.abort(); run.ended = true;',
        to: 'over.abort();',
      },
      {
        rule: 'a handler that has ended starts nothing more, from the moment at which its calls were waited for',
        from: 'run.ended = true; return end;',
        to: 'return end;',
      },
      {
        rule: 'a call that an un-awaited call started is waited for, too',
        from: 'while (run.calls.length > ended)',
        to: 'while (false)',
      },
      {
        rule: 'code that waited for an un-awaited call may make another one',
        from: 'await run.ctx.clock.sleep(0);',
        to: '',
      },
      {
        rule: 'a lease is renewed every third of it',
        from: '/ 3;',
        to: '/ 1;',
      },
      {
        rule: 'a lease that is shorter than the visibility timeout is renewed in time',
        from: 'Math.min(config.leaseMs, config.visibilityTimeoutMs || config.leaseMs)',
        to: '(config.visibilityTimeoutMs || config.leaseMs)',
      },
      {
        rule: 'a visibility timeout that is shorter than the lease is extended in time',
        from: 'Math.min(config.leaseMs, config.visibilityTimeoutMs || config.leaseMs)',
        to: 'config.leaseMs',
      },
      {
        rule: 'a handler that was cut off is judged as one',
        from: 'run.cutOff = { robbed };',
        to: '',
      },
      {
        rule: 'a handler learns that its time is up',
        from: 'stop.abort(outOfTime()); await',
        to: 'await',
      },
      {
        rule: 'a handler learns that its time is up before the mark is written',
        from: 'stop.abort(outOfTime()); await sayOutOfTime(run, robbed);',
        to: 'await sayOutOfTime(run, robbed); stop.abort(outOfTime());',
      },
      {
        rule: 'the mark of a handler whose time the table took counts no attempt',
        from: 'await sayOutOfTime(run, robbed);',
        to: 'await sayOutOfTime(run, false);',
      },
      {
        rule: 'a mark that fails does not fail the batch',
        from: 'outOfTime(), robbed).catch(',
        to: 'outOfTime(), robbed).finally(',
      },
      {
        rule: 'a handler that is still running after an unknown commit keeps its lease',
        from: "commit.kind === 'unknown' && end.kind !== 'out-of-time'",
        to: "commit.kind === 'unknown'",
      },
      {
        rule: 'an error after a commit is logged',
        from: "ctx.telemetry.log.error('The handler threw after its commit; the message is processed', { error });",
        to: '',
      },
      {
        rule: 'an un-awaited failure after a commit is logged',
        from: 'for (const error of unheard) logUnheard(ctx.telemetry, error);',
        to: '',
      },
      {
        rule: 'a commit settles its message whatever the handler did later',
        from: "if (commit.kind === 'done') {",
        to: "if (commit.kind === 'done' && end.kind !== 'threw') {",
      },
      {
        rule: 'a failure that its handler observed does not fail the message',
        from: 'failures.filter(({ call }) => !call.heard)',
        to: 'failures',
      },
      {
        rule: 'an un-awaited failure fails a message that its handler reports as processed',
        from: "end.kind === 'returned' || (end.kind === 'threw' && isMailroomError(end.error, 'ALREADY_PROCESSED'))",
        to: "end.kind === 'returned'",
      },
      {
        rule: 'an un-awaited AlreadyProcessed does not hide another failure',
        from: "unheard.find((failure) => !isMailroomError(failure, 'ALREADY_PROCESSED')) ?? unheard[0]",
        to: 'unheard[0]',
      },
      {
        rule: 'a lone un-awaited AlreadyProcessed settles the message',
        from: '?? unheard[0];',
        to: ';',
      },
      {
        rule: 'a worker that has lost its message renews no more',
        from: 'stop.abort(error); return;',
        to: 'stop.abort(error);',
      },
      {
        rule: 'a renewal that fails is followed by another one',
        from: "telemetry.log.warn('A lease renewal failed; the next one tries again', { error: error as Error });",
        to: 'return;',
      },
      {
        rule: 'a renewal hides a message without a visibility timeout for a second',
        from: 'Math.max(1, Math.ceil(hiddenMs / 1_000))',
        to: 'Math.ceil(hiddenMs / 1_000)',
      },
      {
        rule: 'a renewal hides a message until a second after its function',
        from: 'claim.endsBy + 1_000 - clock.now()',
        to: 'claim.endsBy - 1_000 - clock.now()',
      },
      {
        rule: 'a message is not renewed after its commit',
        from: "|| run.commit.kind === 'done') return;",
        to: ') return;',
      },
    ],
  ),
];
