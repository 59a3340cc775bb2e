import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** Writing an event beside the service's own writes. */
export const writeMutants: readonly Mutant[] = [
  ...mutantsOf('write/outbox.ts', unit('outbox'), [
    {
      rule: 'an outbox row is written only if there is none yet',
      from: "Item: row, ConditionExpression: 'attribute_not_exists(PK)'",
      to: 'Item: row',
    },
    {
      rule: 'events are written in the same transaction as the domain writes',
      from: '[...writes, ...made]',
      to: '[...writes]',
    },
    {
      rule: "the reasons of a cancelled commit begin with those of the caller's own writes",
      from: '[...writes, ...made]',
      to: '[...made, ...writes]',
    },
    {
      rule: 'an event is born under a lease of the stream relay',
      from: 'leaseUntil: now + config.bornLeaseMs',
      to: 'leaseUntil: now',
    },
    {
      rule: 'a commit is checked before it is sent',
      from: 'checkTransaction(actions, clock.now());',
      to: '',
    },
    {
      rule: 'an event inherits the correlation of the event that caused it',
      from: 'draft.correlationId ?? cause?.correlationId ?? eventId',
      to: 'draft.correlationId ?? eventId',
    },
    {
      rule: 'an event names the event that caused it',
      from: 'draft.causationId ?? cause?.eventId',
      to: 'draft.causationId',
    },
    {
      rule: 'an inherited trace header that is too long is dropped',
      from: 'isTraceId(cause?.traceId) ? cause.traceId',
      to: 'cause !== undefined ? cause.traceId',
    },
    {
      rule: 'an outbox row leaves room for the attributes that the relay adds',
      from: 'ITEM_BYTES_MAX - ROW_RESERVE_BYTES',
      to: 'ITEM_BYTES_MAX',
    },
  ]),
  ...mutantsOf('write/event-draft.ts', unit('outbox'), [
    {
      rule: 'a payload is validated as consumers will read it, after JSON',
      from: 'JSON.parse(jsonOf(type, draft.data))',
      to: 'draft.data',
    },
  ]),
  ...mutantsOf('write/transaction-checks.ts', unit('outbox'), [
    {
      rule: 'a stale entry is refused, because its published row may have expired',
      from: 'now - eventIdTime(eventId) > ENTRY_AGE_MAX_MS',
      to: 'false',
    },
    {
      rule: 'a transaction has at most 100 actions',
      from: 'count > TRANSACTION_ACTIONS_MAX',
      to: 'false',
    },
    {
      rule: "the consumer's inbox row counts towards the 100 actions",
      from: 'actions.length + ownActions',
      to: 'actions.length',
      killers: unit('consumer-commits'),
    },
    {
      rule: 'a transaction has at most 4 MB',
      from: 'bytes > TRANSACTION_BYTES_MAX',
      to: 'false',
    },
    {
      rule: 'an empty commit is refused',
      from: 'count === 0',
      to: 'false',
    },
  ]),
  ...mutantsOf('retry.ts', unit('retry'), [
    {
      rule: 'every try of a transaction carries the same token',
      from: 'table.transact(actions, token)',
      to: 'table.transact(actions, mintToken(random))',
    },
    {
      rule: 'a transaction is retried at once only if every refusal is a conflict',
      from: "codes.every((code) => code === 'None' || code === 'TransactionConflict')",
      to: 'true',
    },
    {
      rule: 'a cancellation without a conflict is not retried as one',
      from: "codes.includes('TransactionConflict') &&",
      to: '',
    },
    {
      rule: 'a transaction that conflicted with another one is retried',
      from: 'conflicts >= CONFLICT_TRIES',
      to: 'conflicts >= 1',
    },
    {
      rule: 'a transaction whose answer was lost is retried',
      from: 'lost.length >= LOST_ANSWER_TRIES',
      to: 'lost.length >= 1',
    },
    {
      rule: 'after a lost answer, a cancellation proves nothing',
      from: 'else if (isTransactionCancelled(error)) throw lost[0] ?? error;',
      to: 'else if (isTransactionCancelled(error)) throw error;',
    },
    {
      rule: 'after a lost answer, a refused request proves nothing',
      from: 'else throw lost[0] ?? error;',
      to: 'else throw error;',
    },
    {
      rule: 'a request that DynamoDB refused is not sent again',
      from: 'return !CERTAINLY_REFUSED.test(errorCode(error));',
      to: 'return true;',
    },
  ]),
  ...mutantsOf(
    'dynamo-table.ts',
    ['test/unit/dynamo-table.test.ts'],
    [
      {
        rule: 'a transaction is sent with its token',
        from: 'ClientRequestToken: token',
        to: 'ClientRequestToken: undefined',
      },
      {
        rule: 'after a refused update without a row in its answer, the row is read strongly consistently',
        from: 'get(key, { consistent: true })',
        to: 'get(key)',
      },
    ],
  ),
];
