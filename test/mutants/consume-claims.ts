import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The inbox: who may have a message. */
export const consumeClaimMutants: readonly Mutant[] = [
  ...mutantsOf(
    'consume/inbox-claim.ts',
    unit(
      'consumer-fences',
      'consumer-lost-answers',
      'consumer-leases',
      'consumer-retries',
      'consumer-poison',
    ),
    [
      {
        rule: 'a lease never outlasts the function of its worker',
        from: 'Math.min(now + deps.leaseMs, endsBy)',
        to: 'now + deps.leaseMs',
      },
      {
        rule: 'each claim has its own fencing token',
        from: 'const fence = mintToken(random);',
        to: "const fence = 'the same';",
      },
      {
        rule: 'attempts start at 1 at the first receive',
        from: "firstReceive ? ':one' :",
        to: "firstReceive ? 'if_not_exists(attempts, :one)' :",
      },
      {
        rule: 'each claim counts an attempt',
        from: "'if_not_exists(attempts, :zero) + :one'",
        to: "'if_not_exists(attempts, :one) + :zero'",
      },
      {
        rule: 'a claim whose answer was lost is recognised',
        from: 'if (isOurs(row, fence)) return granted(error.item ?? {});',
        to: '',
      },
      {
        rule: 'the REJECTED pointer is deleted when the message is redriven',
        from: '{ Delete: { Key: { ...rows.pointerKeyOf(message) } } },',
        to: '',
      },
      {
        rule: 'a redriven message gets all of its attempts again',
        from: 'attempts = :one REMOVE reason',
        to: 'attempts = attempts + :one REMOVE reason',
      },
    ],
  ),
  ...mutantsOf(
    'consume/inbox-conditions.ts',
    unit(
      'consumer-fences',
      'consumer-lost-answers',
      'consumer-leases',
      'consumer-poison',
      'consumer-commits',
      'message-operations',
    ),
    [
      {
        rule: 'a message that is too old and has no row is not claimed',
        from: "...(tooOld(message) ? [] : ['attribute_not_exists(PK)'])",
        to: "'attribute_not_exists(PK)'",
      },
      {
        rule: 'a message is too old once its row may have expired',
        from: '> inboxRetentionDays * DAY_MS',
        to: '> Number.POSITIVE_INFINITY',
      },
      {
        rule: 'a failed message can be claimed',
        from: "'#status = :FAILED',",
        to: "'(#status = :FAILED AND attribute_not_exists(PK))',",
      },
      {
        rule: 'a message is taken over only after its lease has ended',
        from: '(#status = :PROCESSING AND leaseUntil < :now)',
        to: '(#status = :PROCESSING AND (leaseUntil < :now OR attribute_exists(PK)))',
      },
      {
        rule: 'a message is taken over once its lease has ended',
        from: '(#status = :PROCESSING AND leaseUntil < :now)',
        to: '(#status = :PROCESSING AND leaseUntil < :now AND attribute_not_exists(PK))',
      },
      {
        rule: 'a message is not claimed under an id under which it was rejected',
        from: ')}) AND NOT contains(rejectedIds, :messageId)',
        to: ')}) AND (NOT contains(rejectedIds, :messageId) OR contains(rejectedIds, :messageId))',
      },
      {
        rule: 'a rejected message is readmitted only if its row is the one that was read',
        from: '#status = :REJECTED AND fence = :heldFence AND NOT contains(rejectedIds, :messageId)',
        to: '(#status = :REJECTED AND fence = :heldFence AND NOT contains(rejectedIds, :messageId)) OR attribute_exists(PK)',
      },
      {
        rule: 'a message that was rejected as too old is readmitted only if an operator allows it',
        from: 'reason === TOO_OLD && !row.runAnyway',
        to: 'false',
      },
      {
        rule: 'a message that an operator allows is readmitted',
        from: 'reason === TOO_OLD && !row.runAnyway',
        to: 'reason === TOO_OLD',
      },
      {
        rule: 'a discarded message is never run',
        from: "row.status === 'PROCESSED' || row.status === 'DISCARDED'",
        to: "row.status === 'PROCESSED'",
        killers: unit('message-operations'),
      },
      {
        rule: 'a message whose lease has ended is abandoned',
        from: 'if (until < clock.now())',
        to: 'if (false)',
      },
      {
        rule: 'a leased message is free for certain once its function is stopped',
        from: 'endsBy: row.endsBy ?? until',
        to: 'endsBy: until',
      },
      {
        rule: 'a transition is conditional on PROCESSING',
        from: '#status = :heldStatus AND fence = :heldFence',
        to: '(#status = :heldStatus OR attribute_exists(PK)) AND fence = :heldFence',
      },
      {
        rule: 'a transition is conditional on the fencing token of its claim',
        from: '#status = :heldStatus AND fence = :heldFence',
        to: '#status = :heldStatus AND (fence = :heldFence OR attribute_exists(PK))',
      },
      {
        rule: 'an effect starts only under the claim of its message',
        from: 'ConditionExpression: MINE,',
        to: 'ConditionExpression: MINE + " OR attribute_exists(PK)",',
        killers: unit('consumer-effects'),
      },
      {
        rule: 'a claim holds a message only while it is PROCESSING',
        from: "row?.status === 'PROCESSING' && row.fence === fence",
        to: 'row?.fence === fence',
      },
      {
        rule: 'a claim holds a message only under its own fencing token',
        from: "row?.status === 'PROCESSING' && row.fence === fence",
        to: "row?.status === 'PROCESSING'",
      },
    ],
  ),
  ...mutantsOf('consume/delivery.ts', unit('consumer-fences'), [
    {
      rule: 'a message with an unknown receive count may be a repeat',
      from: 'receives >= 1 ? receives : 2',
      to: 'receives >= 1 ? receives : 1',
    },
  ]),
];
