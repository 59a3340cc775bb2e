import { type Mutant, mutantsOf, unit } from './mutant.ts';

const killersOfJudgement = unit(
  'inbox-claim',
  'consumer-leases',
  'leased-run',
  'consumer-poison',
  'claimed-run',
  'leased-context',
  'inbox-history',
  'consumer-turns',
  'message-operations',
  'stored-rows',
);

/** The inbox: who may have a message, and what a row that says no means. */
export const consumeConditionMutants: readonly Mutant[] = [
  ...mutantsOf('store/inbox-conditions.ts', killersOfJudgement, [
    {
      rule: 'a message that is too old and has no row is not claimed',
      from: "=== undefined ? ['attribute_not_exists(PK)'] : []",
      to: "!== null ? ['attribute_not_exists(PK)'] : []",
    },
    {
      rule: 'a failed message can be claimed',
      from: "alone ? '#status = :FAILED' :",
      to: "alone ? '(#status = :FAILED AND attribute_not_exists(PK))' :",
    },
    {
      rule: 'a failed message that must run alone is not claimed in company',
      from: 'NOT unfinished >= :aloneFrom',
      to: '(NOT unfinished >= :aloneFrom OR attribute_exists(PK))',
    },
    {
      rule: 'a failed message that need not run alone is claimed in company',
      from: 'NOT unfinished >= :aloneFrom',
      to: '(NOT unfinished >= :aloneFrom AND attribute_not_exists(PK))',
    },
    {
      rule: 'a message has two claims in company before it must run alone',
      from: 'export const ALONE_FROM = 2;',
      to: 'export const ALONE_FROM = 1;',
    },
    {
      rule: 'a message that ended twice without a result must run alone',
      from: 'export const ALONE_FROM = 2;',
      to: 'export const ALONE_FROM = 3;',
    },
    {
      rule: 'a takeover needs a lease that has passed when it is written',
      from: '#status = :held AND NOT leaseUntil >= :now',
      to: '#status = :held AND (NOT leaseUntil >= :now OR attribute_exists(PK))',
    },
    {
      rule: 'a takeover needs a PROCESSING message',
      from: '#status = :held AND NOT leaseUntil >= :now',
      to: '(#status = :held OR attribute_exists(PK)) AND NOT leaseUntil >= :now',
    },
    {
      rule: 'a message without a lease is taken over at once',
      from: 'NOT leaseUntil >= :now',
      to: 'leaseUntil < :now',
    },
    {
      rule: 'a takeover is pinned by the fencing token that was read',
      from: '`${LEASE_PASSED} AND ${fencedBy(row)} AND ${NOT_REJECTED}`',
      to: '`${LEASE_PASSED} AND (${fencedBy(row)} OR attribute_exists(PK)) AND ${NOT_REJECTED}`',
    },
    {
      rule: 'a takeover is refused under an id under which the message was rejected',
      from: '`${LEASE_PASSED} AND ${fencedBy(row)} AND ${NOT_REJECTED}`',
      to: '`${LEASE_PASSED} AND ${fencedBy(row)} AND (${NOT_REJECTED} OR attribute_exists(PK))`',
      equivalent:
        'The row was judged before, and whoever rejects or readmits it in between gives it another status or another fence.',
    },
    {
      rule: 'a row without a fencing token is taken over only while it has none',
      from: "fence === undefined ? 'attribute_not_exists(fence)' :",
      to: "fence === undefined ? 'attribute_exists(PK)' :",
    },
    {
      rule: 'a message is not claimed under an id under which it was rejected',
      from: "failed].join(' OR ')}) AND ${NOT_REJECTED}`",
      to: "failed].join(' OR ')}) AND (${NOT_REJECTED} OR attribute_exists(PK))`",
    },
    {
      rule: 'poison is rejected also under a lease that has ended',
      from: "'#status = :FAILED', `(${LEASE_PASSED})`]",
      to: "'#status = :FAILED', `(${LEASE_PASSED} AND attribute_not_exists(PK))`]",
    },
    {
      rule: 'poison is not rejected under a lease that lasts',
      from: "'#status = :FAILED', `(${LEASE_PASSED})`]",
      to: "'#status = :FAILED', `(${LEASE_PASSED} OR #status = :held)`]",
    },
    {
      rule: 'a rejected message is let in again only as it was read',
      from: '`#status = :REJECTED AND ${fencedBy(row)} AND ${NOT_REJECTED}`',
      to: '`(#status = :REJECTED AND ${fencedBy(row)} AND ${NOT_REJECTED}) OR attribute_exists(PK)`',
    },
    {
      rule: 'a transition needs a PROCESSING message',
      from: '#status = :heldStatus AND fence = :heldFence',
      to: '(#status = :heldStatus OR attribute_exists(PK)) AND fence = :heldFence',
    },
    {
      rule: 'a transition needs the fencing token of the claim',
      from: '#status = :heldStatus AND fence = :heldFence',
      to: '#status = :heldStatus AND (fence = :heldFence OR attribute_exists(PK))',
    },
  ]),
  ...mutantsOf('store/inbox-admission.ts', killersOfJudgement, [
    {
      rule: 'the claim that is to be taken over is one without a result too',
      from: "(row.status === 'PROCESSING' ? 1 : 0) >= ALONE_FROM",
      to: '0 >= ALONE_FROM',
    },
    {
      rule: 'a message that was rejected as too old runs only when an operator allows it',
      from: 'reason === TOO_OLD && !row.runAnyway',
      to: 'false',
    },
    {
      rule: 'a message that an operator allows to run is let in again',
      from: 'reason === TOO_OLD && !row.runAnyway',
      to: 'reason === TOO_OLD',
    },
    {
      rule: 'a message whose row cannot be read waits, also if it was rejected under this id',
      from: "if (state.is === 'unreadable') return { status: 'unreadable' };",
      to: '',
      killers: unit('newer-rows'),
    },
    {
      rule: 'a discarded message is never run',
      from: "state.is === 'processed' || state.is === 'discarded'",
      to: "state.is === 'processed'",
      killers: unit('message-operations'),
    },
    {
      rule: 'a message that is held is free for certain only when its function is stopped',
      from: 'endsBy: row.endsBy ?? state.until',
      to: 'endsBy: state.until',
    },
    {
      rule: 'a claim that is refused because the message must run alone says so',
      from: "if (row !== undefined && mustRunAlone(row)) return { status: 'suspect' };",
      to: '',
    },
    {
      rule: 'a message is ours only while it is PROCESSING',
      from: "row?.status === 'PROCESSING' && row.fence === fence",
      to: 'row?.fence === fence',
    },
    {
      rule: 'a message is ours only under our fencing token',
      from: "row?.status === 'PROCESSING' && row.fence === fence",
      to: "row?.status === 'PROCESSING'",
    },
  ]),
  ...mutantsOf('store/row-update.ts', unit('row-update', 'newer-rows'), [
    {
      rule: 'no version writes a row of a newer schema',
      from: 'OR #schema <= :schema)',
      to: 'OR #schema <= :schema OR attribute_exists(PK))',
    },
    {
      rule: 'a row without a schema is written',
      from: '(attribute_not_exists(#schema) OR #schema <= :schema)',
      to: '#schema <= :schema',
    },
    {
      rule: 'the clause of the schema does not weaken the rest of a condition',
      from: '`(${update.ConditionExpression}) AND ${KNOWN_SCHEMA}`',
      to: '`${update.ConditionExpression} AND ${KNOWN_SCHEMA}`',
    },
  ]),
  ...mutantsOf('store/inbox-state.ts', killersOfJudgement, [
    {
      rule: 'a row of a newer schema is unreadable, whatever its status is',
      from: '!isKnownSchema(row.schema)',
      to: 'false',
      killers: unit('newer-rows'),
    },
    {
      rule: 'a row whose status is unknown is left alone',
      from: "return { is: 'unreadable', problem: 'its ",
      to: "return { is: 'failed', row, problem: 'its ",
    },
    {
      rule: 'a message whose lease has ended is abandoned',
      from: 'until < now ?',
      to: 'until < 0 ?',
    },
    {
      rule: 'a message under a lease that lasts is not abandoned',
      from: 'until < now ?',
      to: 'true ?',
    },
  ]),
];
