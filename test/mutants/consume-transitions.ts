import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The inbox: what becomes of a message that somebody has. */
export const consumeTransitionMutants: readonly Mutant[] = [
  ...mutantsOf('store/inbox-row.ts', unit('consumer-fences', 'consumer-lost-answers', 'consumer-commits'), [
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
    'store/inbox-lease.ts',
    unit('inbox-lease', 'consumer-fences', 'consumer-lost-answers', 'consumer-leases', 'consumer-effects'),
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
        from: "(row: { readonly status: string }) => row.status === 'FAILED'",
        to: '(_row: unknown) => false',
      },
      {
        rule: 'a failure takes the claims without a result back',
        from: '${CAUSE} REMOVE leaseUntil, endsBy, unfinished, outOfTime',
        to: '${CAUSE} REMOVE leaseUntil, endsBy, outOfTime',
      },
      {
        rule: 'a release keeps the claims without a result',
        from: '`, ${CAUSE}`} REMOVE leaseUntil, endsBy, outOfTime',
        to: '`, ${CAUSE}`} REMOVE leaseUntil, endsBy, unfinished, outOfTime',
      },
      {
        rule: 'an outage is written on the row as its last error',
        from: "error === undefined ? '' : `, ${CAUSE}`",
        to: "true ? '' : `, ${CAUSE}`",
      },
      {
        rule: 'a handler that was cut off ended without a result',
        from: "':unfinished': current.unfinished + 1",
        to: "':unfinished': current.unfinished",
      },
      {
        rule: 'a handler that was cut off counts no attempt unless it ran alone',
        from: 'current.unfinished >= ALONE_FROM ? 0 : 1',
        to: '0',
      },
      {
        rule: 'a handler that was cut off alone counts an attempt',
        from: 'current.unfinished >= ALONE_FROM ? 0 : 1',
        to: '1',
      },
      {
        rule: 'a row says that its handler ran out of time',
        from: '`SET outOfTime = :true, ${CAUSE}',
        to: '`SET wasOutOfTime = :true, ${CAUSE}',
      },
      {
        rule: 'a claim of which the table took the time is not one without a result',
        from: "robbed ? ' REMOVE unfinished' : ''",
        to: "''",
      },
      {
        rule: 'a claim that had all of its time stays one without a result',
        from: "robbed ? ' REMOVE unfinished' : ''",
        to: "' REMOVE unfinished'",
      },
      {
        rule: 'a message that is released counts no attempt',
        from: 'attempts = attempts - :one',
        to: 'attempts = if_not_exists(attempts, :one)',
      },
    ],
  ),
  ...mutantsOf(
    'store/inbox-completion.ts',
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
        rule: 'a message that is processed has no claims without a result',
        from: 'reason, rejectedAt, unfinished, outOfTime',
        to: 'reason, rejectedAt',
        killers: unit('inbox-lease'),
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
  ...mutantsOf('store/inbox-rejection.ts', unit('consumer-fences', 'consumer-poison', 'consumer-retries'), [
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
      rule: 'a message that is rejected has no claims without a result',
      from: 'retryAt, unfinished, outOfTime',
      to: 'retryAt',
      killers: unit('inbox-lease'),
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
