import type { Mutant } from './mutant.ts';

const KILLERS = ['test/unit/cli/resend.test.ts', 'test/unit/cli/interrupted-resend.test.ts'];

const REDRIVE_KILLERS = [
  'test/unit/cli/standing.test.ts',
  'test/unit/cli/redrive-plan.test.ts',
  'test/unit/cli/redrive-steps.test.ts',
  ...KILLERS,
];

/** An operator sends the event of a dead letter with other data: of it and all events in its place, at most one runs. */
export const resendMutants: readonly Mutant[] = [
  ...resendMutantsOf('resend', [
    {
      rule: 'the old event is discarded before the event in its place is sent',
      from: 'await takeOver(deps, replacement, note); await deps.queues.send(replacement.consumer.queue, replacement.body);',
      to: 'await deps.queues.send(replacement.consumer.queue, replacement.body); await takeOver(deps, replacement, note);',
    },
    {
      rule: 'only the event that the row of the old one names is sent',
      from: 'if (named !== newEventId) throw',
      to: 'if (named === undefined) throw',
    },
    {
      rule: 'an event whose old one was not discarded in its favour is not sent',
      from: 'throw cannot(`Event ${eventId} is ${status} at ${consumer.name} since the plan. Nothing was sent.`);',
      to: 'return;',
    },
    {
      rule: 'an effect of the old event that was started after the plan stops the resend',
      from: 'if (isDeepStrictEqual(effectsOf(row), effectsOf(planned))) return;',
      to: 'return;',
    },
  ]),
  ...resendMutantsOf('resend-plan', [
    {
      rule: 'an old event that was processed, or that a worker holds, is not replaced',
      from: 'refuseSettled(session, deadLetter, consumer);',
      to: '',
    },
    {
      rule: 'an event whose replacement was received is not replaced again',
      from: 'if (last.row === undefined) return',
      to: 'if (last.row !== null) return',
    },
    {
      rule: 'a replacement that was never received can be replaced',
      from: 'if (last.row === undefined) return { replaced: events, newEventId: idAfter(last) };',
      to: '',
    },
    {
      rule: 'a resend of the same data is the same event, also when it is repeated',
      from: 'if (idAfter(before) === last.eventId)',
      to: 'if (last.eventId === undefined)',
    },
    {
      rule: 'the last of the replaced events is discarded, not the first',
      from: 'replaced: replaced.at(-1) ?? replaced[0],',
      to: 'replaced: replaced[0],',
    },
    {
      rule: 'effects of the replaced events are not repeated under other keys',
      from: 'if (!repeatEffects) refuseEffects(eventId, row, consumer);',
      to: '',
    },
    {
      rule: 'an effect of a replaced event that may still run is waited for',
      from: 'refuseRunningEffects(eventId, row, session.clock.now());',
      to: '',
    },
    {
      rule: 'effects of every replaced event count',
      from: 'of replacing.replaced) {',
      to: 'of replacing.replaced.slice(-1)) {',
    },
    {
      rule: 'data that the filter of the consumer excludes is not sent',
      from: 'refuseFiltered(session, source, { source: bus, type: envelope.type }, data);',
      to: '',
    },
    {
      rule: 'an event in place of another one is judged by its own row',
      from: 'row: await readInbox(table, consumer.name, newEventId, true),',
      to: 'row: undefined,',
    },
  ]),
  ...resendMutantsOf('resend-search', [
    {
      rule: 'only an interrupted resend is completed without its dead letter',
      from: "if (settled(standing, clock.now()) !== 'unsent') return undefined;",
      to: '',
    },
    {
      rule: 'an interrupted resend is found by the id of the new event',
      from: 'if (resent?.consumer === source.consumer.name)',
      to: 'if (resent === null)',
    },
  ]),
  ...resendMutantsOf(
    'standing',
    [
      {
        rule: 'an event whose replacement was not received is not handled',
        from: "if (unsentReplacement(standing) !== undefined) return 'unsent';",
        to: '',
      },
      {
        rule: 'a replacement without a row was not received',
        from: 'if (last !== undefined && last.row === undefined) return last.eventId;',
        to: '',
      },
      {
        rule: 'a replacement that was not read counts as not received',
        from: 'return replacementOf(last === undefined ? row : last.row);',
        to: 'return undefined;',
      },
      {
        rule: 'the replacements are followed to the last one',
        from: 'next = replacementOf(replacement.row);',
        to: 'next = undefined;',
      },
      {
        rule: 'a replacement whose row cannot be read is not handled',
        from: "inboxState(last.row, now).is === 'unreadable' ? 'unreadable' : 'handled'",
        to: "'handled'",
      },
      {
        rule: 'a replaced event is handled by a replacement in any state',
        from: 'if (last !== undefined) return inboxState',
        to: 'if (last !== undefined && now < 0) return inboxState',
      },
    ],
    REDRIVE_KILLERS,
  ),
  ...resendMutantsOf(
    'redrivers',
    [
      {
        rule: 'a redrive keeps a dead letter whose event was replaced meanwhile',
        from: 'if (unsentReplacement(await standingOf(deadLetter)) !== undefined) return;',
        to: '',
      },
      {
        rule: 'a redriven event whose replacement was not received is not done',
        from: 'if (isHandled(standing)) return DONE;',
        to: "if (now.status === 'PROCESSED' || now.status === 'DISCARDED') return DONE;",
      },
    ],
    REDRIVE_KILLERS,
  ),
  ...resendMutantsOf('discard', [
    {
      rule: 'a discard discards the replacement that was not received',
      from: 'eventId: replacement ?? inboxId(deadLetter),',
      to: 'eventId: inboxId(deadLetter),',
    },
    {
      rule: 'a discard keeps a dead letter whose event was replaced meanwhile',
      from: "if (unsentReplacement(standing) !== undefined) return 'unsent';",
      to: '',
    },
  ]),
  ...resendMutantsOf(
    'unreadable-rows',
    [
      {
        rule: 'the row of a message that could not be read is settled only if it is rejected',
        from: "readable(await readInbox(deps.table, name, unreadId, true))?.status !== 'REJECTED'",
        to: 'false',
      },
      {
        rule: 'the row of a message that could not be read names the event that was redriven',
        from: 'await discardMessage(deps, {',
        to: 'if (eventId === unreadId) await discardMessage(deps, {',
      },
    ],
    ['test/unit/cli/unreadable-rows.test.ts'],
  ),
  ...resendMutantsOf('resent-id', [
    {
      rule: 'the same data has the same id',
      from: 'SHARDS_MAX, () => digest.subarray(0, 16)',
      to: 'SHARDS_MAX',
    },
    {
      rule: 'other data has another id',
      from: 'eventId, sorted(data)]',
      to: 'eventId]',
    },
    {
      rule: 'another consumer has another id',
      from: "['resend', consumer, eventId,",
      to: "['resend', eventId,",
    },
    {
      rule: 'the order of members is not other data',
      from: '{ members: members.sort(([a], [b]) => (a < b ? -1 : 1)) }',
      to: '{ members }',
    },
    {
      rule: 'an event in place of another one becomes too old with it',
      from: 'mintEventId(eventIdTime(eventId),',
      to: 'mintEventId(Date.now(),',
    },
  ]),
  ...resendMutantsOf('discard', [
    {
      rule: 'a discard leaves the event in place of another one once that was received',
      from: 'unlessReceived: replacement !== undefined',
      to: 'unlessReceived: false',
    },
    {
      rule: 'a discard reports a DEAD event of a newer version as unreadable',
      from: "row !== undefined && isUnreadable(row) ? 'unreadable' : 'handled'",
      to: "row === undefined ? 'unreadable' : 'handled'",
    },
  ]),
  ...resendMutantsOf('resend', [
    {
      rule: 'a resend is done only if the new event itself was processed',
      from: "row?.status === 'PROCESSED' ? progress :",
      to: 'row !== undefined ? progress :',
    },
  ]),
  ...resendMutantsOf(
    'redrivers',
    [
      {
        rule: 'an attempt that was not counted is not the same failure again',
        from: "now.status === 'FAILED' && sameCause && now.attempts > 0",
        to: "now.status === 'FAILED' && sameCause",
      },
    ],
    REDRIVE_KILLERS,
  ),
];

/** The mutants of one file. @param file - its name in `cli/dead-letters/` */
function resendMutantsOf(
  file: string,
  mutants: readonly Pick<Mutant, 'rule' | 'from' | 'to'>[],
  killers: readonly string[] = KILLERS,
): Mutant[] {
  return mutants.map((mutant) => ({ ...mutant, file: `cli/dead-letters/${file}.ts`, killers }));
}
