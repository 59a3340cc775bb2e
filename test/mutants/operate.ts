import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** What an operator does to events and messages. */
export const operateMutants: readonly Mutant[] = [
  ...mutantsOf('store/outbox-decisions.ts', unit('outbox-decisions'), [
    {
      rule: 'only a DEAD event is requeued or discarded',
      from: "when: { status: 'DEAD' }",
      to: 'when: {}',
    },
    {
      rule: 'no version requeues or discards an event whose row has a newer schema',
      from: '{ Update: ofKnownSchema(Update) },',
      to: '{ Update },',
      killers: unit('newer-rows'),
    },
    {
      rule: 'no version marks an event as sent again in a row of a newer schema',
      from: 'table.write({ Update: ofKnownSchema(Update) })',
      to: 'table.write({ Update })',
      killers: unit('newer-rows'),
    },
    {
      rule: 'a requeued event has all of its attempts again',
      from: 'attempts: 0, ',
      to: '',
    },
    {
      rule: 'a requeued event is due at once',
      from: 'leaseUntil: now, ...noted',
      to: '...noted',
    },
    {
      rule: 'the pointer of a DEAD event goes when it is requeued or discarded',
      from: '{ Delete: { Key: { ...deadKey(eventIdShard(eventId), eventId) } } },',
      to: '',
    },
    {
      rule: 'the minute of a requeued event becomes unsettled',
      from: '{ Put: { Item: { ...pointer } } },',
      to: '',
    },
    {
      rule: 'an event that is not there is told from one that is not DEAD by a strongly consistent read',
      from: 'table.get(outboxKeyOf(eventId), { consistent: true })',
      to: 'table.get(outboxKeyOf(eventId))',
    },
  ]),
  ...mutantsOf('store/inbox-decision.ts', unit('message-operations'), [
    {
      rule: "the row of an operator's decision outlives every inbox retention",
      from: 'expiresAt: decisionExpiresAt(now)',
      to: 'expiresAt: Math.ceil(now / 1_000) + 36 * 86_400',
    },
  ]),
  ...mutantsOf('store/table-requests.ts', unit('outbox-decisions'), [
    {
      rule: 'to say that an event is sent again makes no row',
      from: "|| 'attribute_exists(PK)'",
      to: "|| 'attribute_exists(PK) OR attribute_not_exists(PK)'",
    },
  ]),
  ...mutantsOf('store/retry.ts', unit('outbox-decisions'), [
    {
      rule: 'a decision was refused only when its own condition was',
      from: "isMailroomError(error, 'TRANSACTION_CANCELLED') && error.reasons[0]?.code === 'ConditionalCheckFailed'",
      to: "isMailroomError(error, 'TRANSACTION_CANCELLED')",
    },
  ]),
  ...mutantsOf('store/inbox-state.ts', unit('audit-verdict', 'audit'), [
    {
      rule: 'a worker may work until its function is stopped',
      from: 'Math.max(leaseUntil ?? claimedAt, endsBy) < at',
      to: '(leaseUntil ?? claimedAt) < at',
    },
    {
      rule: 'a failed message is overdue when it was to be shown long ago',
      from: 'return retryAt !== undefined && retryAt < at;',
      to: 'return false;',
    },
  ]),
  ...mutantsOf('store/inbox-decision.ts', unit('message-operations'), [
    {
      rule: 'a message is resolved only as it was seen: its status',
      from: "'#status = :seenStatus'",
      to: "'(attribute_exists(PK) OR #status = :seenStatus)'",
    },
    {
      rule: 'a message is resolved only as it was seen: its claim',
      from: "'fence = :seenFence'",
      to: "'(attribute_exists(PK) OR fence = :seenFence)'",
    },
    {
      rule: 'a message is resolved only as it was seen: its lease',
      from: "'leaseUntil = :seenLeaseUntil'",
      to: "'(attribute_exists(PK) OR leaseUntil = :seenLeaseUntil)'",
    },
    {
      rule: 'a message that has not come yet is resolved only while it has no row',
      from: "if (row === undefined) return { condition: 'attribute_not_exists(PK)', values: {} };",
      to: "if (row === undefined) return { condition: 'attribute_not_exists(NOTHING)', values: {} };",
    },
    {
      rule: 'a message that is final is not resolved, by force neither',
      from: 'OR NOT (#status IN (:PROCESSED, :DISCARDED))',
      to: 'OR attribute_exists(PK) OR NOT (#status IN (:PROCESSED, :DISCARDED))',
    },
    {
      rule: 'a decision takes a fencing token of its own',
      from: 'fence, expiresAt: decisionExpiresAt(',
      to: 'expiresAt: decisionExpiresAt(',
    },
    {
      rule: 'the pointer of a rejected message goes when it is resolved or discarded',
      from: '{ Delete: { Key: { ...rejectedKey(inbox.consumer, eventId) } } },',
      to: '',
    },
    {
      rule: 'only a message that is too old is allowed to run',
      from: '#status = :REJECTED AND reason = :TOO_OLD',
      to: '#status = :REJECTED AND (attribute_exists(PK) OR reason = :TOO_OLD)',
    },
    {
      rule: 'only a rejected message is allowed to run',
      from: '#status = :REJECTED AND reason = :TOO_OLD',
      to: '(attribute_exists(PK) OR #status = :REJECTED) AND reason = :TOO_OLD',
      equivalent: 'Only a rejected row has a reason: each transition out of REJECTED removes it.',
    },
  ]),
  ...mutantsOf('operations/message-operations.ts', unit('message-operations'), [
    {
      rule: 'why a message was not allowed is read strongly consistently',
      from: 'if (await allowMessage({ table, clock, random, consumer }, note)) return; const row = readInboxRow(await table.get(inboxKey(consumer, eventId), { consistent: true }));',
      to: 'if (await allowMessage({ table, clock, random, consumer }, note)) return; const row = readInboxRow(await table.get(inboxKey(consumer, eventId)));',
    },
  ]),
  ...mutantsOf(
    'operations/directory-parts.ts',
    ['test/attack/directory.test.ts'],
    [
      {
        rule: 'an alias does not complete the ARN of another account',
        from: "if (path === 'alias' && entry.alias !== undefined) return `${entry.function}:${entry.alias}`;",
        to: '',
      },
    ],
  ),
  ...mutantsOf('operations/subscriptions.ts', unit('audit'), [
    {
      rule: 'a consumer must see the events of its sources only',
      from: 'event.source !== source || event.type',
      to: 'event.type',
    },
    {
      rule: 'a consumer must see the events of its types only',
      from: '|| event.type !== type',
      to: '',
    },
    {
      rule: 'a consumer need not see the events that its filter leaves out',
      from: 'matchesFilter(filter, payload)',
      to: 'true',
    },
    {
      rule: 'a filter leaves out no event whose payload is unknown',
      from: 'payload === undefined ||',
      to: '',
      killers: unit('audit-declaration'),
    },
  ]),
  ...mutantsOf('operations/sqs-queues.ts', unit('sqs-queues'), [
    {
      rule: 'a receive that brings nothing does not show that the queue is empty',
      from: 'empty < EMPTY_RECEIVES',
      to: 'empty < 1',
    },
    {
      rule: 'a letter that is received twice is one',
      from: "found.set(message.MessageId ?? '', queueMessageOf(message))",
      to: "found.set(message.ReceiptHandle ?? '', queueMessageOf(message))",
    },
    {
      rule: 'hidden and delayed messages are in the queue',
      from: "number('ApproximateNumberOfMessagesNotVisible') + number('ApproximateNumberOfMessagesDelayed')",
      to: '0',
    },
  ]),
];
