import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The audit: what it reads and reports. */
export const auditMutants: readonly Mutant[] = [
  ...mutantsOf('audit/audit-walk.ts', unit('audit', 'audit-verdict'), [
    {
      rule: 'an event that was minted before the range is left out',
      from: 'mintedAt < since ||',
      to: '',
    },
    {
      rule: 'an event that was minted after the range is left out',
      from: '|| mintedAt >= until',
      to: '',
    },
    {
      rule: 'only a published event is expected of its consumers',
      from: "if (row.status !== 'PUBLISHED') return;",
      to: '',
    },
    {
      rule: 'an event that was sent again is on its way from then on',
      from: 'Math.max(publishedAt, row.resentAt ?? 0)',
      to: 'publishedAt',
      killers: unit('audit-repair'),
    },
    {
      rule: 'a message that nobody tries again is looked for',
      from: 'row === undefined || isOverdue(row, overdueAt)',
      to: 'row === undefined',
    },
    {
      rule: 'every page of a minute is audited',
      from: 'cursor = page.cursor;',
      to: 'cursor = undefined;',
    },
    {
      rule: 'a row whose envelope is not its own is unreadable',
      from: 'envelope?.eventId !== eventId ||',
      to: '',
    },
    {
      rule: 'a row in a state that this version does not know is unreadable',
      from: '|| count === undefined',
      to: '',
    },
    {
      rule: 'the audit reads no further when its time is over',
      from: 'if (!goesOn()) return false;',
      to: '',
    },
    {
      rule: 'the audit says how far it has seen everything',
      from: 'if (whole.includes(false)) break;',
      to: '',
    },
  ]),
  ...mutantsOf('audit/audit-ledger.ts', unit('audit'), [
    {
      rule: 'an audit that does not add up fails',
      from: 'if (sum === expected)',
      to: 'if (true)',
    },
  ]),
  ...mutantsOf('audit/audit.ts', unit('audit', 'audit-verdict'), [
    {
      rule: 'a message is overdue only after the grace',
      from: 'overdueAt: startedAt - graceMs',
      to: 'overdueAt: startedAt',
      equivalent:
        'The verdict on a message that has a row asks once more whether it is overdue for as long as the grace.',
    },
    {
      rule: 'an audit that did not see everything says so',
      from: 'if (seenUntil < until)',
      to: 'if (false)',
    },
    {
      rule: 'the walk leaves time for the verdicts',
      from: '(endsBy - startedAt) * WALK_SHARE',
      to: '(endsBy - startedAt)',
    },
  ]),
  ...mutantsOf('audit/audit-doubles.ts', unit('audit'), [
    {
      rule: 'events that nothing caused are not doubled',
      from: 'if (causationId === undefined) return;',
      to: '',
    },
    {
      rule: 'events with different sequences are not doubled',
      from: 'sequence ?? null, data',
      to: 'data',
    },
    {
      rule: 'events with different data are not doubled',
      from: 'sequence ?? null, data]',
      to: 'sequence ?? null]',
    },
    {
      rule: 'events of different aggregates are not doubled',
      from: 'source, type, aggregateId, sequence',
      to: 'source, type, sequence',
    },
    {
      rule: 'events of different causes are not doubled',
      from: '[causationId, source, type, aggregateId, sequence',
      to: '[source, type, aggregateId, sequence',
    },
  ]),
  ...mutantsOf('audit/audit-handler.ts', unit('audit-handler'), [
    {
      rule: 'the scheduled audit leaves the youngest events to its next run',
      from: 'until: now - YOUNGEST_MS',
      to: 'until: now',
    },
    {
      rule: 'the scheduled audit looks back further by the time in which a loss cannot be seen',
      from: 'Math.min(SINCE_MAX_MS, config.sinceMs + longestMs)',
      to: 'config.sinceMs',
    },
    {
      rule: 'the scheduled audit ends before its function is stopped',
      from: 'context.getRemainingTimeInMillis() - END_MARGIN_MS',
      to: 'context.getRemainingTimeInMillis()',
    },
  ]),
  ...mutantsOf('audit/audit-queue-age.ts', unit('audit-queue-age'), [
    {
      rule: 'nothing younger than all receives of a message take is older than the oldest message',
      from: 'Math.min(at.getTime() - ageS * 1_000, now - (await receivesMs(url)))',
      to: 'at.getTime() - ageS * 1_000',
    },
    {
      rule: 'the oldest message is at least as old as its queue says',
      from: 'Math.min(at.getTime() - ageS * 1_000, now - (await receivesMs(url)))',
      to: 'now - (await receivesMs(url))',
    },
    {
      rule: 'without a metric nobody knows how old the oldest message is',
      from: 'if (at === undefined || ageS === undefined) return undefined;',
      to: 'if (at === undefined || ageS === undefined) return now;',
    },
  ]),
  ...mutantsOf('audit/audit-drift.ts', unit('audit-drift'), [
    {
      rule: 'a pattern that takes fewer events has drifted',
      from: 'Object.keys(others).length === 0 &&',
      to: '',
    },
    {
      rule: 'a rule that hands over to another queue has drifted',
      from: 'queue === undefined || deployed.targets.includes(queue.arn)',
      to: 'true',
    },
    {
      rule: 'a rule that is disabled has drifted',
      from: 'deployed.enabled ?',
      to: 'true ?',
    },
  ]),
  ...mutantsOf('audit/audit-repair.ts', unit('audit-repair'), [
    {
      rule: 'a repair sends an event only to the consumer that misses it',
      from: 'missing.filter((event) => event.consumer === consumer.name)',
      to: '[...missing]',
    },
    {
      rule: 'a repair is written down before it is made',
      from: "await recordOperation(deps, { ...note, command: 'audit --repair', subject });",
      to: '',
    },
    {
      rule: 'an event whose row has expired is not sent',
      from: 'if (item === undefined) return false;',
      to: '',
    },
  ]),
];
