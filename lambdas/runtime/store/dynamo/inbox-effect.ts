import { CLOCK_SKEW_MS } from '../../base/clock.ts';
import { rowOf } from '../../inbox/inbox-admission.ts';
import {
  checkFinished,
  EFFECTS_MAX,
  type EffectCall,
  type EffectEnd,
  EffectInProgress,
  ended,
  notStarted,
} from '../../inbox/inbox-effect.ts';
import type { StoredEffect } from '../stored-effect.ts';
import type { Item } from '../table.ts';
import type { InboxContext } from './inbox-context.ts';
import { mine, writeRow } from './inbox-writes.ts';

/**
 * The condition for starting an effect, besides holding the message. One of these is true: it has no entry; an earlier call
 * failed and released it; an earlier call of this claim started it and has ended, because calls of one effect run one after
 * another; or the function that started it has certainly stopped, by every clock. A delayed start must not replace a later call,
 * whose result could then not be stored, nor reopen what its own call released, for which the next attempt would wait.
 */
const STARTABLE =
  '((attribute_not_exists(effects.#effect) AND size(effects) < :most) OR ' +
  '(effects.#effect.#status = :RELEASED AND (effects.#effect.fence <> :heldFence OR effects.#effect.#run < :run)) OR ' +
  '(effects.#effect.#status = :IN_PROGRESS AND ' +
  '((effects.#effect.fence = :heldFence AND effects.#effect.#run <= :run) OR effects.#effect.endsBy < :stopped)))';

/** The condition for finishing an effect: this call started it, and nothing finished it. */
const FINISHABLE =
  'effects.#effect.#status = :IN_PROGRESS AND effects.#effect.fence = :fence AND effects.#effect.#run = :run';

/**
 * Sets an effect IN_PROGRESS in the row of its message, while this worker holds the message. Entries are never removed, and the
 * row does not expire before the message is PROCESSED.
 *
 *     start              finish                      another worker may start
 *       |---- IN_PROGRESS --|---- ... ----| endsBy ----|
 *       |        run        |             | the function is stopped: CLOCK_SKEW_MS later for every clock
 *
 * @returns the effect if it is completed; `undefined` if it has started
 * @throws {@link EffectInProgress}; `FENCE_LOST` if this worker has lost the message; `TOO_MANY_EFFECTS`
 */
export async function startEffect(
  inbox: InboxContext,
  call: EffectCall,
): Promise<Pick<StoredEffect, 'result'> | undefined> {
  const { claim, name, run } = call;
  const startedAt = inbox.clock.now();
  const { fence, endsBy } = claim;
  const entry: StoredEffect = { status: 'IN_PROGRESS', fence, run, endsBy, startedAt };
  const held = mine(inbox, claim);
  const { ok, item } = await writeRow(
    inbox,
    claim.message.eventId,
    { set: {}, computed: { 'effects.#effect': ':entry' }, values: { ':entry': entry } },
    {
      condition: `${held.condition} AND ${STARTABLE}`,
      names: { '#effect': name },
      values: {
        ...held.values,
        ':most': EFFECTS_MAX,
        ':RELEASED': 'RELEASED',
        ':IN_PROGRESS': 'IN_PROGRESS',
        ':run': run,
        ':stopped': startedAt - CLOCK_SKEW_MS,
      },
    },
  );
  return ok ? undefined : notStarted(call, rowOf(item));
}

/**
 * Sets an effect COMPLETED with its result, or RELEASED with its error, so that the next attempt runs it again. The condition
 * names the call that started it, because a write that timed out may take effect late, after the handler has tried the effect
 * again under the same claim. It does not depend on the message: the result of a completed effect is stored even after the lease
 * is lost. Without the effect's entry nothing is written, so that no write brings back a row that TTL has deleted.
 *
 * @throws `FENCE_LOST` if another call has started the effect
 */
export async function finishEffect(inbox: InboxContext, call: EffectCall, end: EffectEnd): Promise<void> {
  const { claim, name, run } = call;
  const { fence } = claim;
  const { ok, item } = await writeRow(inbox, claim.message.eventId, finished(inbox, end), {
    condition: FINISHABLE,
    names: { '#effect': name },
    values: { ':IN_PROGRESS': 'IN_PROGRESS', ':fence': fence, ':run': run },
  });
  if (!ok) checkFinished(call, end, rowOf(item));
}

function finished(inbox: InboxContext, end: EffectEnd) {
  const attributes = Object.entries(ended(inbox, end)).filter(([, value]) => value !== undefined);
  return {
    set: {},
    // `status` and `result` are reserved words of DynamoDB.
    computed: Object.fromEntries(attributes.map(([name]) => [`effects.#effect.#${name}`, `:${name}Now`])),
    values: Object.fromEntries(attributes.map(([name, value]) => [`:${name}Now`, value])) as Item,
  };
}
