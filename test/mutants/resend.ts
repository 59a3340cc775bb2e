import type { Mutant } from './mutant.ts';

const KILLERS = ['test/unit/cli/resend.test.ts'];

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
      from: 'refuseSettled(session, deadLetter, newEventId, consumer.name);',
      to: '',
    },
    {
      rule: 'an event is replaced by one event only',
      from: 'if (other !== undefined) throw',
      to: 'if (other === newEventId) throw',
    },
    {
      rule: 'effects of the old event are not repeated under other keys',
      from: 'if (!repeatEffects) refuseEffects(deadLetter, consumer.name);',
      to: '',
    },
    {
      rule: 'an effect of the old event that may still run is waited for',
      from: 'refuseRunningEffects(deadLetter, clock.now());',
      to: '',
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
];

/** The mutants of one file. @param file - its name in `cli/dead-letters/` */
function resendMutantsOf(file: string, mutants: readonly Pick<Mutant, 'rule' | 'from' | 'to'>[]): Mutant[] {
  return mutants.map((mutant) => ({
    ...mutant,
    file: `cli/dead-letters/${file}.ts`,
    killers: KILLERS,
  }));
}
