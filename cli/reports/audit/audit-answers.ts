import type { ConsumerLedger, Standing } from '../../../lambdas/runtime/operations/audit/audit-ledger.ts';

/** The answers of an audit about the events of a consumer: the four sums of its counts. */
export interface AuditAnswers {
  /** It handled the event, or an operator decided that it need not. */
  readonly processed: number;
  /** On its way, failed or rejected: a row or a dead letter shows where it is. */
  readonly open: number;
  /** Published, and lost on its way. */
  readonly missing: number;
  /** Nothing proves whether it arrived. */
  readonly cannotTell: number;
}

/** The answer that each count is a part of, and the words for the count. */
const ANSWER_OF: Readonly<Record<Standing, readonly [answer: keyof AuditAnswers, words: string]>> = {
  processed: ['processed', 'processed'],
  discarded: ['processed', 'discarded'],
  inFlight: ['open', 'in flight'],
  failed: ['open', 'failed'],
  rejected: ['open', 'rejected'],
  deadLetters: ['open', 'dead-lettered'],
  waiting: ['open', 'waiting'],
  missing: ['missing', 'missing'],
  inconclusive: ['cannotTell', 'inconclusive'],
  unproven: ['cannotTell', 'unproven'],
  unreadable: ['cannotTell', 'unreadable'],
};

const STANDINGS = Object.keys(ANSWER_OF) as Standing[];

/** Sums the counts of a consumer up. */
export function answersOf(ledger: ConsumerLedger): AuditAnswers {
  const sum = (answer: keyof AuditAnswers) =>
    STANDINGS.filter((standing) => ANSWER_OF[standing][0] === answer).reduce(
      (total, standing) => total + ledger[standing],
      0,
    );
  return {
    processed: sum('processed'),
    open: sum('open'),
    missing: sum('missing'),
    cannotTell: sum('cannotTell'),
  };
}

/** The counts that an answer hides, in words: `2 in flight`, `1 discarded`. A count that is 0 is left out. */
export function detailsOf(ledger: ConsumerLedger): string[] {
  return STANDINGS.filter((standing) => standing !== 'processed' && standing !== 'missing').flatMap(
    (standing) => (ledger[standing] > 0 ? [`${ledger[standing]} ${ANSWER_OF[standing][1]}`] : []),
  );
}
