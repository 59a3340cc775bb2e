import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The audit: what it calls missing. */
export const auditVerdictMutants: readonly Mutant[] = [
  ...mutantsOf('operations/audit/audit-verdict.ts', unit('audit-verdict'), [
    {
      rule: 'an event with a dead letter is not missing',
      from: 'if (dead.eventIds.has(event.eventId)) return',
      to: 'if (false) return',
    },
    {
      rule: 'an event within the grace may still be on its way',
      from: 'event.sentAt + deps.graceMs > lookedAt ||',
      to: '',
    },
    {
      rule: 'an event may be among the dead letters that could not be looked at',
      from: '|| !dead.complete',
      to: '',
    },
    {
      rule: 'while the queue is not empty and its age is unknown, an event may be in it',
      from: 'oldestAt === undefined ||',
      to: '',
    },
    {
      rule: 'an event younger than the oldest message may be in the queue',
      from: '|| sentAt + CLOCK_MARGIN_MS >= oldestAt',
      to: '',
    },
    {
      rule: 'a message may bear a time a clock margin before its publish',
      from: 'sentAt + CLOCK_MARGIN_MS >= oldestAt',
      to: 'sentAt >= oldestAt',
    },
    {
      rule: 'a message that has a row is gone only when the queue is empty',
      from: 'return row !== undefined || oldestAt',
      to: 'return oldestAt',
    },
    {
      rule: 'an event that may be in the queue is not missing',
      from: "if (!mayBeQueued(received)) return ledger.judge(consumer.name, event, 'missing');",
      to: "return ledger.judge(consumer.name, event, 'missing');",
    },
    {
      rule: 'no age proves that a message is gone that was received before',
      from: 'oldestAt !== undefined && doubtful.every(({ row }) => row === undefined)',
      to: 'oldestAt !== undefined',
    },
    {
      rule: 'events beyond the messages of the queue are missing',
      from: 'Math.max(0, events - queued)',
      to: '0',
    },
    {
      rule: 'the audit is conclusive when the last inconclusive event can be',
      from: 'Math.max(latest, sentAt)',
      to: 'latest || sentAt',
    },
    {
      rule: 'how full the queue is is looked at before the dead letters are',
      from: 'const before = await heldBy(queues, consumer.queue); const dead = await deadLettersOf(queues, consumer);',
      to: 'const dead = await deadLettersOf(queues, consumer); const before = await heldBy(queues, consumer.queue);',
    },
    {
      rule: 'how full the queue is is looked at once more after the dead letters were',
      from: 'Math.max(before, await heldBy(queues, consumer.queue))',
      to: 'before',
    },
    {
      rule: 'an event is missing only by a strongly consistent read',
      from: 'event.eventId), { consistent: true })',
      to: 'event.eventId))',
    },
    {
      rule: 'a row that came since says where its event is',
      from: 'if (row !== undefined && (isUnreadable(row) || !isOverdue(row, lookedAt - deps.graceMs))) return',
      to: 'if (false) return',
    },
    {
      rule: 'a message that was claimed since is not missing',
      from: '(isUnreadable(row) || !isOverdue(row, lookedAt - deps.graceMs))',
      to: 'isUnreadable(row)',
    },
    {
      rule: 'an event whose inbox row may have expired is unproven',
      from: '!isExpired(event) &&',
      to: '',
    },
    {
      rule: 'an event from before the declaration is unproven',
      from: '(deps.earlier || (await declaration.covers(event)))',
      to: 'true',
    },
    {
      rule: 'an event from before the declaration is expected where it is asked for',
      from: '(deps.earlier || (await declaration.covers(event)))',
      to: '(await declaration.covers(event))',
    },
    {
      rule: 'the dead letters of the dead-letter queue are looked at',
      from: 'of deadLettersTo(consumer)',
      to: "of deadLettersTo(consumer).filter(({ kind }) => kind === 'rule')",
    },
    {
      rule: 'the dead letters of the undelivered queue are looked at',
      from: 'of deadLettersTo(consumer)',
      to: "of deadLettersTo(consumer).filter(({ kind }) => kind === 'consumer')",
    },
    {
      rule: 'dead letters that were not received make the look incomplete',
      from: 'complete &&= deadLetters.length >= total;',
      to: '',
    },
    {
      rule: 'messages that somebody has received are in the queue',
      from: 'return waiting + inFlight;',
      to: 'return waiting;',
    },
    {
      rule: 'an event that there was no time to judge is not missing',
      from: 'if (!goesOn()) {',
      to: 'if (false) {',
      killers: unit('audit'),
    },
  ]),
  ...mutantsOf('operations/dead-letters.ts', unit('audit-verdict', 'dead-letters'), [
    {
      rule: 'a dead letter that was read is made visible again',
      from: 'await pMap(received, (letter) => queues.show(queue.url, letter), { concurrency: SHOWN_AT_ONCE });',
      to: '',
    },
    {
      rule: 'hidden dead letters are counted',
      from: 'const total = waiting + inFlight;',
      to: 'const total = waiting;',
    },
  ]),
  ...mutantsOf('operations/audit/audit-declaration.ts', unit('audit-declaration', 'audit-verdict'), [
    {
      rule: 'a rule that was changed matches only a minute later',
      from: 'since + RULE_DELAY_MS',
      to: 'since',
    },
  ]),
];
