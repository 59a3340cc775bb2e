import { CLOCK_SKEW_MS } from '../clock.ts';
import { FenceLost, isMailroomError, MailroomError } from '../errors.ts';
import type { Claim, InboxContext } from './inbox.ts';
import { heldBy } from './inbox-conditions.ts';
import { transactWithRetry } from './retry.ts';
import { conditionalUpdate, conditionalWrite, type RowChange } from './row-update.ts';
import { asRow, type EffectRow, effectKey, inboxKey, SCHEMA } from './rows.ts';

/** One call of `ctx.once`, identified by the claim's fence and the number of the call, from 1. */
export interface EffectCall {
  readonly claim: Claim;
  readonly name: string;
  readonly run: number;
}

/** An effect may still be running under an earlier claim of this message: return the message, and retry after `until`. */
export class EffectInProgress extends MailroomError {
  readonly until: number;

  constructor(name: string, until: number) {
    super(
      'EFFECT_IN_PROGRESS',
      `Effect "${name}" may still be running elsewhere until ${new Date(until).toISOString()}`,
    );
    this.name = 'EffectInProgress';
    this.until = until;
  }
}

/**
 * The condition for starting an effect. One of these is true: it has no row; it failed and was released; an earlier call of this
 * claim started it and has ended, because calls of one effect run one after another; or the function that started it has
 * certainly stopped, by every clock. A delayed start must not replace a later call, whose result could then not be stored.
 */
const STARTABLE =
  'attribute_not_exists(PK) OR #status = :RELEASED OR ' +
  '(#status = :IN_PROGRESS AND ((fence = :fence AND #run <= :run) OR endsBy < :stopped))';

/**
 * Sets an effect IN_PROGRESS while this worker holds the message. Rows are never deleted, and none expires before the message is
 * PROCESSED.
 *
 *     start              finish                      another worker may start
 *       |---- IN_PROGRESS --|---- ... ----| endsBy ----|
 *       |        run        |             | the function is stopped: CLOCK_SKEW_MS later for every clock
 *
 * @returns the effect if it is completed; `undefined` if it has started
 * @throws {@link EffectInProgress}; `FENCE_LOST` if this worker has lost the message
 */
export async function startEffect(inbox: InboxContext, call: EffectCall): Promise<EffectRow | undefined> {
  const { fence, endsBy, message } = call.claim;
  const startedAt = inbox.clock.now();
  const change: RowChange = {
    set: { schema: SCHEMA, status: 'IN_PROGRESS', fence, run: call.run, endsBy, startedAt },
    // A row that outlived its message's expired row must not expire while its effect runs.
    remove: ['expiresAt'],
  };
  const values = { ':RELEASED': 'RELEASED', ':stopped': startedAt - CLOCK_SKEW_MS };
  try {
    await transactWithRetry(inbox, [
      heldBy(call.claim, inboxKey(inbox.consumer, message.eventId)),
      // An update, although it writes the whole row: the table's own policy allows no puts of inbox rows.
      { Update: conditionalUpdate(keyOf(inbox, call), change, { condition: STARTABLE, values }) },
    ]);
    return undefined;
  } catch (error) {
    if (!isMailroomError(error, 'TRANSACTION_CANCELLED')) throw error;
    const [held, started] = error.reasons;
    if (held?.code === 'ConditionalCheckFailed') throw fenceLost(call, 'was not started');
    if (started?.code !== 'ConditionalCheckFailed' || started.item === undefined) throw error;
    const row = asRow<EffectRow>(started.item);
    if (row.status !== 'COMPLETED') throw new EffectInProgress(call.name, row.endsBy + CLOCK_SKEW_MS);
    return row;
  }
}

/**
 * Sets an effect COMPLETED with its result, or RELEASED after a failure, so that the next attempt runs it again. The condition
 * names the call that started it, because a write that timed out may take effect late, after the handler has tried the effect
 * again under the same claim. It does not depend on the message: the result of a completed effect is stored even after the lease
 * is lost.
 *
 * @throws `FENCE_LOST` if another call has started the effect
 */
export async function finishEffect(
  inbox: InboxContext,
  call: EffectCall,
  status: 'COMPLETED' | 'RELEASED',
  result?: string,
): Promise<void> {
  const { fence } = call.claim;
  const completed = status === 'COMPLETED' ? { completedAt: inbox.clock.now(), result } : {};
  const { ok, item } = await conditionalWrite(
    inbox.table,
    keyOf(inbox, call),
    { set: { status, ...completed } },
    {
      condition: '#status = :IN_PROGRESS AND fence = :fence AND #run = :run',
      values: { ':IN_PROGRESS': 'IN_PROGRESS', ':fence': fence, ':run': call.run },
    },
  );
  if (ok) return;
  const row = item === undefined ? undefined : asRow<EffectRow>(item);
  const ours = row?.fence === fence && row.run === call.run;
  if (ours && row.status === status) return; // this call wrote it, but the response was lost
  throw fenceLost(call, 'ran, but its result cannot be stored');
}

function keyOf({ consumer }: InboxContext, { claim, name }: EffectCall) {
  return effectKey(consumer, claim.message.eventId, name);
}

function fenceLost({ claim, name }: EffectCall, what: string): FenceLost {
  return new FenceLost(
    `Effect "${name}" of message ${claim.message.eventId} ${what}: this worker no longer holds the message`,
  );
}
