import type { Claim, InboxRefusal, InboxRules } from '../inbox/inbox.ts';
import { refusalBy } from '../inbox/inbox-admission.ts';
import { hasHappened, type RowTransition } from '../inbox/row-transition.ts';
import { inMs, type PostgresInboxContext, readRow, runAlone } from './postgres-inbox-row.ts';

/** A time of the rules' clock, as one of the database's clock. */
const FROM_NOW = inMs('?::float8');

type Attribute =
  | Exclude<keyof RowTransition, 'set' | 'clear'>
  | keyof RowTransition['set']
  | RowTransition['clear'][number];

/** The column of each attribute, its new value from the parameter `?`, and its value once it is cleared. @default NULL */
const COLUMNS: Readonly<Record<Attribute, readonly [column: string, value: string, cleared?: string]>> = {
  status: ['status', '?::text'],
  isUncounted: ['attempts', 'attempts - ?::boolean::int'],
  unfinished: ['unfinished', '?::int', '0'],
  outOfTime: ['out_of_time', '?::boolean', 'false'],
  leaseUntil: ['lease_until', FROM_NOW],
  endsBy: ['ends_by', FROM_NOW],
  retryAt: ['retry_at', FROM_NOW],
  processedAt: ['processed_at', 'clock_timestamp()'],
  keepDays: ['expires_at', "clock_timestamp() + ?::float8 * interval '1 day'"],
  rejectedAt: ['rejected_at', 'clock_timestamp()'],
  reason: ['reason', '?::text'],
  lastError: ['last_error', '?::text'],
  fingerprint: ['fingerprint', '?::text'],
  pastAttempts: ['past_attempts', '?::text'],
  result: ['result', '?::text'],
};

/** The statement that makes a transition under a claim's fence, and its parameters. @param returned - of the row that it changed */
export function transitionOf(
  { consumer, clock }: InboxRules,
  { message, fence }: Claim,
  { set, clear, ...more }: RowTransition,
  returned: string,
): [text: string, values: unknown[]] {
  const values: unknown[] = [consumer, message.eventId, fence];
  const given = Object.entries({ ...set, ...more }).filter(([, value]) => value !== undefined);
  const changes = given.map(([name, value]) => {
    const [column, sql] = COLUMNS[name as Attribute];
    const inFuture = sql === FROM_NOW ? Number(value) - clock.now() : value;
    const stored = typeof inFuture === 'object' ? JSON.stringify(inFuture) : inFuture;
    return `${column} = ${sql.replace('?', () => `$${values.push(stored)}`)}`;
  });
  const cleared = clear.map((name) => `${COLUMNS[name][0]} = ${COLUMNS[name][2] ?? 'NULL'}`);
  const text = `UPDATE mailroom.inbox SET ${[...changes, ...cleared].join(', ')}, changed_at = clock_timestamp()
    WHERE consumer = $1::text AND event_id = $2::text AND status = 'PROCESSING' AND fence = $3::text RETURNING ${returned}`;
  return [text, values];
}

/** Makes one transition under a claim's fence. As `writeUnderFence` of the inbox in DynamoDB. */
export async function underFence<Tx>(
  ctx: PostgresInboxContext<Tx>,
  claim: Claim,
  transition: RowTransition,
): Promise<InboxRefusal | undefined> {
  const { rules, database } = ctx;
  const done = await runAlone(database, ...transitionOf(rules, claim, transition, '1'), {});
  if (done.length > 0) return undefined;
  const row = await readRow(ctx, database, claim.message.eventId);
  return hasHappened(row, claim, transition) ? undefined : refusalBy(rules, claim.message, row);
}
