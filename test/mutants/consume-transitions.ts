import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The inbox: what becomes of a message that somebody has. */
export const consumeTransitionMutants: readonly Mutant[] = [
  ...mutantsOf('store/inbox-writes.ts', unit('consumer-leases', 'leased-context'), [
    {
      rule: 'a transition is written only under its claim',
      from: 'claim.message.eventId, change, mine(claim))',
      to: 'claim.message.eventId, change, { ...mine(claim), condition: `${mine(claim).condition} OR attribute_exists(PK)` })',
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
      from: "isMailroomError(error, 'TRANSACTION_CANCELLED') && error.reasons[0]?.code === 'ConditionalCheckFailed'",
      to: "isMailroomError(error, 'TRANSACTION_CANCELLED')",
    },
  ]),
  ...mutantsOf(
    'store/inbox-lease.ts',
    unit('inbox-lease', 'consumer-leases', 'leased-run', 'consumer-effects'),
    [
      {
        rule: 'a lease is never renewed past the end of its function',
        from: 'Math.min(inbox.clock.now() + inbox.leaseMs, claim.endsBy)',
        to: 'inbox.clock.now() + inbox.leaseMs',
      },
      {
        rule: 'a worker that cannot renew its lease learns that it has lost its message',
        from: 'if (refusal !== undefined) throw fenceLost(claim, refusal);',
        to: '',
      },
      {
        rule: 'a failure whose answer was lost is recognised',
        from: "return row.status === 'FAILED';",
        to: 'return false;',
      },
      {
        rule: 'a failure takes the claims without a result back',
        from: "remove: ['leaseUntil', 'endsBy', 'unfinished', 'outOfTime']",
        to: "remove: ['leaseUntil', 'endsBy', 'outOfTime']",
      },
      {
        rule: 'a release keeps the claims without a result',
        from: "a message that kills its process. remove: ['leaseUntil',",
        to: "a message that kills its process.\n remove: ['unfinished', 'leaseUntil',",
      },
      {
        rule: 'an outage is written on the row as its last error',
        from: '...(cause === undefined ? {} : rowCause(inbox, cause))',
        to: '',
      },
      {
        rule: 'a handler that was cut off ended without a result',
        from: 'const unfinished = claim.unfinished + 1',
        to: 'const unfinished = claim.unfinished',
      },
      {
        rule: 'a handler that was cut off counts no attempt unless it ran alone',
        from: 'claim.unfinished >= ALONE_FROM ? 0 : 1',
        to: '0',
      },
      {
        rule: 'a handler that was cut off alone counts an attempt',
        from: 'claim.unfinished >= ALONE_FROM ? 0 : 1',
        to: '1',
      },
      {
        rule: 'a row says that its handler ran out of time',
        from: 'set: { outOfTime: true,',
        to: 'set: { wasOutOfTime: true,',
      },
      {
        rule: 'a claim of which the table took the time is not one without a result',
        from: "robbed ? ['unfinished'] : []",
        to: '[]',
      },
      {
        rule: 'a claim that had all of its time stays one without a result',
        from: "robbed ? ['unfinished'] : []",
        to: "['unfinished']",
      },
      {
        rule: 'a message that is released counts no attempt',
        from: "'attempts - :one'",
        to: "'if_not_exists(attempts, :one)'",
      },
    ],
  ),
  ...mutantsOf('store/inbox-completion.ts', unit('consumer-leases', 'leased-context', 'transactional-run'), [
    {
      rule: 'our fencing token means success only where the message is PROCESSED',
      from: "(row) => row.status === 'PROCESSED')",
      to: '() => true)',
    },
    {
      rule: 'a completion whose answer was lost is recognised',
      from: "(row) => row.status === 'PROCESSED')",
      to: '() => false)',
    },
    {
      rule: 'a message that is processed has no claims without a result',
      from: "'rejectedAt', 'unfinished', 'outOfTime',",
      to: "'rejectedAt',",
      killers: unit('inbox-lease'),
    },
    {
      rule: 'a commit is written only under its claim',
      from: 'change, mine(claim), writes)',
      to: 'change, { ...mine(claim), condition: `${mine(claim).condition} OR attribute_exists(PK)` }, writes)',
    },
    {
      rule: 'a commit whose answer was lost is looked up by a strongly consistent read',
      from: 'inbox.table.get(inboxKey(inbox.consumer, message.eventId), { consistent: true })',
      to: 'inbox.table.get(inboxKey(inbox.consumer, message.eventId))',
    },
    {
      rule: 'a commit of which the row says nothing may still happen',
      from: 'if (isOurs(rowOf(item), fence)) throw error;',
      to: '',
    },
    {
      rule: 'a commit whose answer was lost is recognised by its id',
      from: '&& row.commitId === commitId',
      to: '',
    },
    {
      rule: 'a commit that was refused is not taken for one that happened',
      from: 'throw fenceLost(claim, refusalOf(inbox, message, item));',
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
  ]),
  ...mutantsOf('store/inbox-rejection.ts', unit('consumer-leases', 'consumer-poison', 'claimed-run'), [
    {
      rule: 'a rejection is written only under its claim',
      from: 'error)(mine(claim));',
      to: 'error)({ ...mine(claim), condition: `${mine(claim).condition} OR attribute_exists(PK)` });',
    },
    {
      rule: 'a message becomes REJECTED together with the pointer that lists it',
      from: '[{ Put: { Item: { ...pointer } } }]',
      to: '[]',
    },
    {
      rule: 'a message that is rejected has no claims without a result',
      from: "'retryAt', 'unfinished', 'outOfTime'",
      to: "'retryAt'",
      killers: unit('inbox-lease'),
    },
    {
      rule: 'the row and the pointer of a message that cannot be read expire',
      from: '...(isUnreadableId(message.eventId) && {',
      to: '...(false && {',
      killers: unit('consumer-foreign'),
    },
    {
      rule: 'the row and the pointer of a rejected event do not expire',
      from: '...(isUnreadableId(message.eventId) && {',
      to: '...(true && {',
      killers: ['test/unit/stored-shape/stored-shape.test.ts'],
    },
    {
      rule: 'a message that is too old, and poison, is rejected as too old: else it would run once it is fixed',
      from: 'reason === TOO_OLD ?',
      to: 'true ?',
    },
    {
      rule: 'a rejected message is known by every id under which it was rejected',
      from: "if (row === undefined || admissionOf(inbox, message, row).status !== 'readmit')",
      to: 'if (true)',
    },
  ]),
];
