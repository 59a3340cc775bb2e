import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The consumer: a handler under its claim. */
export const consumeHandlerMutants: readonly Mutant[] = [
  ...mutantsOf(
    'consume/leased-context.ts',
    unit(
      'claimed-run',
      'leased-run',
      'consumer',
      'transactional-run',
      'leased-context',
      'consumer-effects',
      'consumer-outages',
      'consumer-crowd',
      'consumer-leases',
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
      {
        rule: 'a handler has no negative time left',
        from: 'Math.max(0, claim.endsBy - ctx.clock.now())',
        to: 'claim.endsBy - ctx.clock.now()',
      },
      {
        rule: 'calls that a handler did not await are waited for',
        from: 'run.calls.push(promise);',
        to: '',
      },
      {
        rule: 'the failure of a call that a handler did not await is kept',
        from: 'run.failures.push({ call, error });',
        to: '',
      },
      {
        rule: 'a failure before the end of its handler is not logged twice',
        from: 'if (run.ended && !call.heard',
        to: 'if (!call.heard',
      },
      {
        rule: 'a failure that its handler observed is not logged',
        from: '&& !call.heard && !logged',
        to: '&& !logged',
      },
      {
        rule: 'a call after the end of its handler is logged once',
        from: '&& !call.heard && !logged',
        to: '&& !call.heard',
      },
      {
        rule: 'an effect is refused after the end of its handler',
        from: 'refuseWhenEnded(run, `ctx.once("${name}")`);',
        to: '',
      },
      {
        rule: 'a commit is refused after the end of its handler',
        from: "refuseWhenEnded(run, 'ctx.commit');",
        to: '',
      },
      {
        rule: 'a call after the end of its handler is an error in the log',
        from: 'ctx.telemetry.log.error(error.message);',
        to: '',
      },
      {
        rule: 'no effect starts after the handler was told to stop',
        from: '`ctx.once("${name}")`); run.signal.throwIfAborted();',
        to: '`ctx.once("${name}")`);',
      },
      {
        rule: 'nothing is committed after the handler was told to stop',
        from: 'throw run.blocked; run.signal.throwIfAborted();',
        to: 'throw run.blocked;',
      },
      {
        rule: 'an effect receives the signal of its handler',
        from: 'effect(idempotencyKey, run.signal)',
        to: 'effect(idempotencyKey)',
      },
      {
        rule: 'an effect that may run elsewhere blocks its message',
        from: "if (isMailroomError(error, 'EFFECT_IN_PROGRESS')) run.blocked = error as EffectInProgress; else if",
        to: 'if',
      },
      {
        rule: 'an effect that was refused for another reason does not block its message',
        from: "if (isMailroomError(error, 'EFFECT_IN_PROGRESS')) run.blocked",
        to: 'if (isMailroomError(error)) run.blocked',
      },
      {
        rule: 'a handler whose effect has ended no longer waits for the table',
        from: 'throw error; } finally { run.waiting -= 1; }',
        to: 'throw error; } finally { run.waiting -= 0; }',
      },
      {
        rule: 'a handler whose commit has ended no longer waits for the table',
        from: 'if (sent) run.waiting -= 1;',
        to: '',
      },
      {
        rule: 'a commit that was refused before it was sent has not waited for the table',
        from: 'if (sent) run.waiting -= 1;',
        to: 'run.waiting -= 1;',
      },
      {
        rule: 'a commit is checked before it is sent by a handler',
        from: 'checkTransaction(actions, { table, clock, ownActions: 1 });',
        to: '',
      },
      {
        rule: 'a commit that was never sent may be corrected',
        from: '!sent || isMailroomError',
        to: 'isMailroomError',
      },
      {
        rule: 'a commit that was cancelled may be corrected',
        from: "isMailroomError(error, 'TRANSACTION_CANCELLED') || isMailroomError(error, 'FENCE_LOST')",
        to: "isMailroomError(error, 'FENCE_LOST')",
      },
      {
        rule: 'a commit of a lost message is known not to have happened',
        from: "isMailroomError(error, 'TRANSACTION_CANCELLED') || isMailroomError(error, 'FENCE_LOST')",
        to: "isMailroomError(error, 'TRANSACTION_CANCELLED')",
      },
      {
        rule: 'a commit settles its message',
        from: "run.commit = { kind: 'done' };",
        to: '',
      },
      {
        rule: 'the events of a commit are counted',
        from: "telemetry.count('EventsCommitted', eventCount(actions));",
        to: '',
        killers: unit('claimed-run'),
      },
      {
        rule: 'the events of a commit inherit from the handled one',
        from: 'outbox.entries(events, run.event)',
        to: 'outbox.entries(events)',
      },
      {
        rule: 'an event that cannot be made is not an outage of the table',
        from: 'if (sent && isOutageOf',
        to: 'if (isOutageOf',
      },
    ],
  ),
];
