import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The audit: what it calls missing. */
export const auditVerdictMutants: readonly Mutant[] = [
  ...mutantsOf('audit/audit-verdict.ts', unit('audit-verdict'), [
    {
      rule: 'an event with a dead letter is not missing',
      from: 'if (letters.eventIds.has(event.eventId)) return',
      to: 'if (false) return',
    },
    {
      rule: 'an event within the grace period may still be on its way',
      from: 'event.sentAt + deps.graceMs > lookedAt ||',
      to: '',
    },
    {
      rule: 'an event may be one of the dead letters that could not be read',
      from: '!letters.complete ||',
      to: '',
    },
    {
      rule: 'while the age of a queue is unknown, an event may be in it',
      from: 'oldestAt === undefined ||',
      to: '',
    },
    {
      rule: 'an event as young as the oldest message may be in the queue',
      from: 'event.sentAt + CLOCK_MARGIN_MS >= oldestAt ||',
      to: '',
    },
    {
      rule: 'a message may be dated a clock margin before its publish',
      from: 'event.sentAt + CLOCK_MARGIN_MS >= oldestAt',
      to: 'event.sentAt >= oldestAt',
    },
    {
      rule: 'a message with a row is gone only if the queue is empty',
      from: '(event.row !== undefined && !empty)',
      to: 'false',
      equivalent: 'The verdict on a message with a row checks again that the queue is empty.',
    },
    {
      rule: 'the queue is counted before its dead letters are read',
      from: 'const before = await held(queues, consumer.queue); const letters = await lettersOf(queues, consumer);',
      to: 'const letters = await lettersOf(queues, consumer); const before = await held(queues, consumer.queue);',
    },
    {
      rule: 'the queue is counted again after its dead letters were read',
      from: 'before === 0 && (await held(queues, consumer.queue)) === 0',
      to: 'before === 0',
    },
    {
      rule: 'only a strongly consistent read shows that an event is missing',
      from: 'event.eventId), { consistent: true })',
      to: 'event.eventId))',
    },
    {
      rule: 'a row that appeared in between decides',
      from: 'return gone ?',
      to: 'return true ?',
    },
    {
      rule: 'a message that was claimed in between is not missing',
      from: 'empty && isOverdue(row, lookedAt - deps.graceMs)',
      to: 'empty',
    },
    {
      rule: 'an event whose inbox row may have expired is unproven',
      from: '!isExpired(consumer, event, lookedAt) &&',
      to: '',
    },
    {
      rule: 'an event published before the declaration is unproven',
      from: '(deps.earlier || isDeclared(consumer, event))',
      to: 'true',
    },
    {
      rule: 'an event published before the declaration is expected on request',
      from: '(deps.earlier || isDeclared(consumer, event))',
      to: 'isDeclared(consumer, event)',
    },
    {
      rule: 'a changed rule takes effect a minute later',
      from: 'changedAt + RULE_DELAY_MS',
      to: 'changedAt',
    },
    {
      rule: 'a dead letter that was read is shown again',
      from: 'await pMap(letters, (letter) => queues.show(url, letter), { concurrency: AT_ONCE });',
      to: '',
    },
    {
      rule: 'the dead-letter queue is read',
      from: '[consumer.deadLetterQueue, consumer.undeliveredQueue]',
      to: '[consumer.undeliveredQueue]',
    },
    {
      rule: 'the undelivered queue is read',
      from: '[consumer.deadLetterQueue, consumer.undeliveredQueue]',
      to: '[consumer.deadLetterQueue]',
    },
    {
      rule: 'dead letters that could not be received make the look incomplete',
      from: 'if (letters.length < count) complete = false;',
      to: '',
    },
    {
      rule: 'messages in flight are in the queue',
      from: 'depth.waiting + depth.inFlight',
      to: 'depth.waiting',
    },
    {
      rule: 'a worker may work until its function is stopped',
      from: 'Math.max(leaseUntil, endsBy ?? 0) < at',
      to: 'leaseUntil < at',
    },
    {
      rule: 'a failed message is overdue once its retry time has passed',
      from: 'return retryAt !== undefined && retryAt < at;',
      to: 'return false;',
    },
    {
      rule: 'an event that was not judged in time is not missing',
      from: 'if (!goesOn()) {',
      to: 'if (false) {',
      killers: unit('audit'),
    },
  ]),
];
