import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The inbox: what becomes of a message that somebody has. */
export const consumeTransitionMutants: readonly Mutant[] = [
  ...mutantsOf('consume/inbox-row.ts', unit('consumer-fences', 'consumer-lost-answers', 'consumer-commits'), [
    {
      rule: 'a transition is written only under its claim',
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
      rule: 'a transition is refused by the inbox only when its own condition was',
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
        rule: 'a worker that cannot renew its lease learns that it has lost its message',
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
        rule: 'our fencing token means success only where the message is PROCESSED',
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
        rule: 'a commit whose answer was lost is looked up by a strongly consistent read',
        from: 'table.get(rows.keyOf(current.message), { consistent: true })',
        to: 'table.get(rows.keyOf(current.message))',
      },
      {
        rule: 'a commit of which the row says nothing may still happen',
        from: 'if (isOurs(rowOf(item), current.fence)) throw error;',
        to: '',
      },
      {
        rule: 'a commit whose answer was lost is recognised by its id',
        from: '&& row.commitId === commitId',
        to: '',
      },
      {
        rule: 'a commit that was refused is not taken for one that happened',
        from: 'throw fenceLost(current, refusalOf(current.message, item));',
        to: '',
      },
      {
        rule: 'a message is committed without a claim only where it has no row',
        from: "'attribute_not_exists(PK)'",
        to: "'attribute_not_exists(PK) OR attribute_exists(PK)'",
      },
      {
        rule: 'a handler sees the reasons of its own writes only',
        from: 'error.reasons.slice(error.reasons.length - writes)',
        to: 'error.reasons',
      },
    ],
  ),
  ...mutantsOf('consume/inbox-rejection.ts', unit('consumer-fences', 'consumer-poison', 'consumer-retries'), [
    {
      rule: 'a rejection is written only under its claim',
      from: '{ ...update, ConditionExpression: MINE }',
      to: '{ ...update, ConditionExpression: MINE + " OR attribute_exists(PK)" }',
    },
    {
      rule: 'a claimed message becomes REJECTED together with the pointer that lists it',
      from: 'mine(current), [pointer],',
      to: 'mine(current), [],',
    },
    {
      rule: 'an unclaimed message becomes REJECTED together with the pointer that lists it',
      from: 'values, [pointer], ); if (refused === undefined) return rejected;',
      to: 'values, [], ); if (refused === undefined) return rejected;',
    },
    {
      rule: 'poison is rejected also under a lease that has ended',
      from: 'claimable(message, true, now)',
      to: 'claimable(message, false, now)',
    },
    {
      rule: 'a message that is too old, and poison, is rejected as too old: else it would run once it is fixed',
      from: 'reason === TOO_OLD ?',
      to: 'true ?',
    },
    {
      rule: 'a rejected message is known by every id under which it was rejected',
      from: "if (row === undefined || judge(message, row).status !== 'readmit')",
      to: 'if (true)',
    },
  ]),
];
