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
      rule: 'a requeued event gets all of its attempts again',
      from: 'attempts = :none',
      to: 'attempts = if_not_exists(attempts, :none)',
    },
    {
      rule: 'a requeued event is due at once',
      from: 'attempts = :none, leaseUntil = :now',
      to: 'attempts = :none, leaseUntil = if_not_exists(leaseUntil, :now)',
    },
    {
      rule: 'the DEAD pointer is deleted when the event is requeued',
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
      rule: 'the DEAD pointer is deleted when the event is discarded',
      from: '{ Delete: { Key: { ...deadKey(eventIdShard(eventId), eventId) } } },',
      to: '',
    },
    {
      rule: 'a strongly consistent read decides whether an event exists',
      from: 'table.get(outboxKeyOf(eventId), { consistent: true })',
      to: 'table.get(outboxKeyOf(eventId))',
    },
    {
      rule: 'recording a redelivery creates no row',
      from: "ConditionExpression: 'attribute_exists(PK)'",
      to: "ConditionExpression: 'attribute_exists(PK) OR attribute_not_exists(PK)'",
      killers: unit('audit-repair'),
    },
    {
      rule: 'a decision counts as refused only if its own condition failed',
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
      rule: 'a message can be resolved once its lease has ended',
      from: 'leaseUntil < :now)',
      to: 'leaseUntil < :schema)',
    },
    {
      rule: 'a failed message can be resolved',
      from: '#status IN (:FAILED, :REJECTED) OR',
      to: '(#status IN (:FAILED, :REJECTED) AND #status <> :FAILED) OR',
    },
    {
      rule: 'a rejected message can be resolved',
      from: '#status IN (:FAILED, :REJECTED) OR',
      to: '(#status IN (:FAILED, :REJECTED) AND #status <> :REJECTED) OR',
    },
    {
      rule: 'a message can be resolved before it arrives',
      from: 'attribute_not_exists(PK) OR #status IN (:FAILED, :REJECTED) OR',
      to: '#status IN (:FAILED, :REJECTED) OR',
    },
    {
      rule: 'a message can be resolved by force before it arrives',
      from: 'attribute_not_exists(PK) OR #status IN (:FAILED, :REJECTED, :PROCESSING)',
      to: '#status IN (:FAILED, :REJECTED, :PROCESSING)',
    },
    {
      rule: 'a final message is not resolved, not even by force',
      from: '#status IN (:FAILED, :REJECTED, :PROCESSING)',
      to: '#status IN (:FAILED, :REJECTED, :PROCESSING) OR attribute_exists(PK)',
    },
    {
      rule: 'a processed message is not resolved again',
      from: '#status IN (:FAILED, :REJECTED) OR',
      to: '#status IN (:FAILED, :REJECTED) OR attribute_exists(processedAt) OR',
    },
    {
      rule: 'a leased message is resolved only by force',
      from: 'force ? NOT_FINAL : FREE',
      to: 'NOT_FINAL',
    },
    {
      rule: 'a leased message is resolved by force',
      from: 'force ? NOT_FINAL : FREE',
      to: 'FREE',
    },
    {
      rule: "an operator's decision takes a new fencing token",
      from: 'fence = :fence,',
      to: 'fence = if_not_exists(fence, :fence),',
    },
    {
      rule: 'the REJECTED pointer is deleted when the message is resolved or discarded',
      from: '{ Delete: { Key: { ...rejectedKey(consumer, eventId) } } },',
      to: '',
    },
    {
      rule: 'only a message that was rejected as too old is allowed to run',
      from: '#status = :REJECTED AND #reason = :TOO_OLD',
      to: '#status = :REJECTED AND (attribute_exists(PK) OR #reason = :TOO_OLD)',
    },
    {
      rule: 'only a REJECTED message is allowed to run',
      from: '#status = :REJECTED AND #reason = :TOO_OLD',
      to: '(attribute_exists(PK) OR #status = :REJECTED) AND #reason = :TOO_OLD',
      equivalent: 'Only a REJECTED row has a reason, because every transition out of REJECTED removes it.',
    },
    {
      rule: 'a strongly consistent read tells why a message was not resolved',
      from: 'get(inboxKey(consumer, eventId), { consistent: true })',
      to: 'get(inboxKey(consumer, eventId))',
    },
    {
      rule: 'a strongly consistent read tells why a message was not allowed',
      from: 'get(key, { consistent: true })',
      to: 'get(key)',
    },
  ]),
  ...mutantsOf('operate/directory.ts', unit('audit'), [
    {
      rule: 'a consumer expects events of its sources only',
      from: 'from.includes(event.source) &&',
      to: '',
    },
    {
      rule: 'a consumer expects events of its types only',
      from: '&& events.includes(event.type)',
      to: '',
    },
  ]),
  ...mutantsOf('operate/sqs-queues.ts', unit('sqs-queues'), [
    {
      rule: 'one empty receive does not prove that a queue is empty',
      from: 'empty < EMPTY_RECEIVES',
      to: 'empty < 1',
    },
    {
      rule: 'a dead letter that is received twice counts once',
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
