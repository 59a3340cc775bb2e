import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The inbox: what becomes of a message that somebody has. */
export const consumeTransitionMutants: readonly Mutant[] = [
  ...mutantsOf('consume/inbox-row.ts', unit('consumer-fences', 'consumer-lost-answers', 'consumer-commits'), [
    {
      rule: 'a transition of a single row is conditional on the claim',
      from: 'ConditionExpression: MINE,',
      to: 'ConditionExpression: MINE + " OR attribute_exists(PK)",',
    },
    {
      rule: 'a transition whose answer was lost is recognised',
      from: 'if (row !== undefined && row.fence === claim.fence && became(row)) return undefined;',
      to: '',
    },
    {
      rule: 'a transition whose answer was lost is recognised by its fencing token',
      from: 'row !== undefined && row.fence === claim.fence && became(row)',
      to: 'row !== undefined && became(row)',
    },
    {
      rule: 'a transaction is refused by the inbox only if the condition of the inbox row failed',
      from: "isTransactionCancelled(error) && error.reasons[0]?.code === 'ConditionalCheckFailed'",
      to: 'isTransactionCancelled(error)',
    },
  ]),
  ...mutantsOf(
    'consume/inbox-lease.ts',
    unit('consumer-fences', 'consumer-lost-answers', 'consumer-leases', 'consumer-effects'),
    [
      {
        rule: 'a lease is never renewed past the end of its function',
        from: 'Math.min(clock.now() + leaseMs, current.endsBy)',
        to: 'clock.now() + leaseMs',
      },
      {
        rule: 'a worker that cannot renew its lease has lost the message',
        from: 'if (refusal !== undefined) throw fenceLost(current, refusal);',
        to: '',
      },
      {
        rule: 'a failure whose answer was lost is recognised',
        from: "(row) => row.status === 'FAILED', ), release:",
        to: '() => false, ), release:',
      },
      {
        rule: 'a release whose answer was lost is recognised',
        from: "':retryAt': retryAt }, (row) => row.status === 'FAILED'",
        to: "':retryAt': retryAt }, () => false",
      },
      {
        rule: 'a message that waits for an effect counts no attempt',
        from: 'attempts = attempts - :one',
        to: 'attempts = if_not_exists(attempts, :one)',
      },
    ],
  ),
  ...mutantsOf(
    'consume/inbox-completion.ts',
    unit('consumer-fences', 'consumer-lost-answers', 'consumer-commits', 'consumer-transactional'),
    [
      {
        rule: 'the fencing token alone does not prove a completion',
        from: "(row) => row.status === 'PROCESSED',",
        to: '() => true,',
      },
      {
        rule: 'a completion whose answer was lost is recognised',
        from: "(row) => row.status === 'PROCESSED',",
        to: '() => false,',
      },
      {
        rule: 'a commit is written only under its claim',
        from: 'ConditionExpression: MINE,',
        to: 'ConditionExpression: MINE + " OR attribute_exists(PK)",',
      },
      {
        rule: 'a commit whose answer was lost is looked up with a strongly consistent read',
        from: 'table.get(rows.keyOf(current.message), { consistent: true })',
        to: 'table.get(rows.keyOf(current.message))',
      },
      {
        rule: 'a commit that is not on the row yet may still happen',
        from: 'if (isOurs(rowOf(item), current.fence)) throw error;',
        to: '',
      },
      {
        rule: 'a commit whose answer was lost is recognised by its id',
        from: '&& row.commitId === commitId',
        to: '',
      },
      {
        rule: 'a refused commit is not taken for success',
        from: 'throw fenceLost(current, refusalOf(current.message, item));',
        to: '',
      },
      {
        rule: 'a commit without a claim is conditional on the row being absent',
        from: "'attribute_not_exists(PK)'",
        to: "'attribute_not_exists(PK) OR attribute_exists(PK)'",
      },
      {
        rule: 'a handler sees only the reasons of its own writes',
        from: 'error.reasons.slice(error.reasons.length - writes)',
        to: 'error.reasons',
      },
    ],
  ),
  ...mutantsOf('consume/inbox-rejection.ts', unit('consumer-fences', 'consumer-poison', 'consumer-retries'), [
    {
      rule: 'a rejection is conditional on the claim',
      from: '{ ...update, ConditionExpression: MINE }',
      to: '{ ...update, ConditionExpression: MINE + " OR attribute_exists(PK)" }',
    },
    {
      rule: 'a claimed message becomes REJECTED in the same transaction as its pointer',
      from: 'mine(current), [pointer],',
      to: 'mine(current), [],',
    },
    {
      rule: 'an unclaimed message becomes REJECTED in the same transaction as its pointer',
      from: 'values, [pointer], ); if (refused === undefined) return rejected;',
      to: 'values, [], ); if (refused === undefined) return rejected;',
    },
    {
      rule: 'poison is rejected even if an expired lease is left on its row',
      from: 'claimable(message, true, now)',
      to: 'claimable(message, false, now)',
    },
    {
      rule: 'poison that is also too old is rejected only as too old',
      from: 'reason === TOO_OLD ?',
      to: 'true ?',
    },
    {
      rule: 'a rejected message remembers every id under which it was rejected',
      from: "if (row === undefined || judge(message, row).status !== 'readmit')",
      to: 'if (true)',
    },
  ]),
];
