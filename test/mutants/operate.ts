import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** What an operator does to events and messages. */
export const operateMutants: readonly Mutant[] = [
  ...mutantsOf('operate/operations.ts', unit('operations'), [
    {
      rule: 'only a DEAD event is requeued',
      from: "REMOVE deadAt`, ConditionExpression: '#status = :DEAD'",
      to: "REMOVE deadAt`, ConditionExpression: 'attribute_exists(PK) OR #status = :DEAD'",
    },
    {
      rule: 'a requeued event has all of its attempts again',
      from: 'attempts = :none',
      to: 'attempts = if_not_exists(attempts, :none)',
    },
    {
      rule: 'a requeued event is due at once',
      from: 'attempts = :none, leaseUntil = :now',
      to: 'attempts = :none, leaseUntil = if_not_exists(leaseUntil, :now)',
    },
    {
      rule: 'the pointer of a DEAD event goes when it is requeued',
      from: '{ Delete: { Key: { ...deadKey(shard, eventId) } } },',
      to: '',
    },
    {
      rule: 'the minute of a requeued event becomes unsettled',
      from: '{ Put: { Item: { ...pointer } } },',
      to: '',
    },
    {
      rule: 'the minute of a requeued event becomes unsettled under a fresh token',
      from: 'token: mintToken(random)',
      to: "token: 'the same'",
    },
    {
      rule: 'only a DEAD event is discarded',
      from: "expiresAt = :expiresAt', ConditionExpression: '#status = :DEAD'",
      to: "expiresAt = :expiresAt', ConditionExpression: 'attribute_exists(PK) OR #status = :DEAD'",
    },
    {
      rule: 'the pointer of a DEAD event goes when it is discarded',
      from: '{ Delete: { Key: { ...deadKey(eventIdShard(eventId), eventId) } } },',
      to: '',
    },
    {
      rule: 'an event that is not there is told from one that is not DEAD by a strongly consistent read',
      from: 'table.get(outboxKeyOf(eventId), { consistent: true })',
      to: 'table.get(outboxKeyOf(eventId))',
    },
    {
      rule: 'to say that an event is sent again makes no row',
      from: "ConditionExpression: 'attribute_exists(PK)'",
      to: "ConditionExpression: 'attribute_exists(PK) OR attribute_not_exists(PK)'",
      killers: unit('audit-repair'),
    },
    {
      rule: 'a decision was refused only when its own condition was',
      from: "isTransactionCancelled(error) && error.reasons[0]?.code === 'ConditionalCheckFailed'",
      to: 'isTransactionCancelled(error)',
    },
  ]),
  ...mutantsOf('operate/message-operations.ts', unit('message-operations'), [
    {
      rule: 'a message is not resolved under a live lease',
      from: '(#status = :PROCESSING AND leaseUntil < :now)',
      to: '(#status = :PROCESSING)',
    },
    {
      rule: 'a message whose lease has ended can be resolved',
      from: 'leaseUntil < :now)',
      to: 'leaseUntil < :schema)',
    },
    {
      rule: 'a message that failed can be resolved',
      from: '#status IN (:FAILED, :REJECTED) OR',
      to: '(#status IN (:FAILED, :REJECTED) AND #status <> :FAILED) OR',
    },
    {
      rule: 'a message that was rejected can be resolved',
      from: '#status IN (:FAILED, :REJECTED) OR',
      to: '(#status IN (:FAILED, :REJECTED) AND #status <> :REJECTED) OR',
    },
    {
      rule: 'a message that has not come yet can be resolved',
      from: 'attribute_not_exists(PK) OR #status IN (:FAILED, :REJECTED) OR',
      to: '#status IN (:FAILED, :REJECTED) OR',
    },
    {
      rule: 'a message that has not come yet can be resolved by force',
      from: 'attribute_not_exists(PK) OR #status IN (:FAILED, :REJECTED, :PROCESSING)',
      to: '#status IN (:FAILED, :REJECTED, :PROCESSING)',
    },
    {
      rule: 'a message that is final is not resolved, by force neither',
      from: '#status IN (:FAILED, :REJECTED, :PROCESSING)',
      to: '#status IN (:FAILED, :REJECTED, :PROCESSING) OR attribute_exists(PK)',
    },
    {
      rule: 'a message that is final is not resolved',
      from: '#status IN (:FAILED, :REJECTED) OR',
      to: '#status IN (:FAILED, :REJECTED) OR attribute_exists(processedAt) OR',
    },
    {
      rule: 'a message is taken from a worker only by force',
      from: 'force ? NOT_FINAL : FREE',
      to: 'NOT_FINAL',
    },
    {
      rule: 'a message is taken from a worker by force',
      from: 'force ? NOT_FINAL : FREE',
      to: 'FREE',
    },
    {
      rule: 'a decision takes a fencing token of its own',
      from: 'fence = :fence,',
      to: 'fence = if_not_exists(fence, :fence),',
    },
    {
      rule: 'the pointer of a rejected message goes when it is resolved or discarded',
      from: '{ Delete: { Key: { ...rejectedKey(consumer, eventId) } } },',
      to: '',
    },
    {
      rule: 'only a message that is too old is allowed to run',
      from: '#status = :REJECTED AND #reason = :TOO_OLD',
      to: '#status = :REJECTED AND (attribute_exists(PK) OR #reason = :TOO_OLD)',
    },
    {
      rule: 'only a rejected message is allowed to run',
      from: '#status = :REJECTED AND #reason = :TOO_OLD',
      to: '(attribute_exists(PK) OR #status = :REJECTED) AND #reason = :TOO_OLD',
      equivalent: 'Only a rejected row has a reason: each transition out of REJECTED removes it.',
    },
    {
      rule: 'why a message was not ended is read strongly consistently',
      from: 'get(inboxKey(consumer, eventId), { consistent: true })',
      to: 'get(inboxKey(consumer, eventId))',
    },
    {
      rule: 'why a message was not allowed is read strongly consistently',
      from: 'get(key, { consistent: true })',
      to: 'get(key)',
    },
  ]),
  ...mutantsOf('operate/directory.ts', unit('audit'), [
    {
      rule: 'a consumer must see the events of its sources only',
      from: 'from.includes(source) &&',
      to: '',
    },
    {
      rule: 'a consumer must see the events of its types only',
      from: '&& events.includes(type)',
      to: '',
    },
  ]),
  ...mutantsOf('operate/sqs-queues.ts', unit('sqs-queues'), [
    {
      rule: 'a receive that brings nothing does not show that the queue is empty',
      from: 'empty < EMPTY_RECEIVES',
      to: 'empty < 1',
    },
    {
      rule: 'a letter that is received twice is one',
      from: "found.set(message.MessageId ?? '', letterOf(message))",
      to: "found.set(message.ReceiptHandle ?? '', letterOf(message))",
    },
    {
      rule: 'hidden and delayed messages are in the queue',
      from: "number('ApproximateNumberOfMessagesNotVisible') + number('ApproximateNumberOfMessagesDelayed')",
      to: '0',
    },
  ]),
];
