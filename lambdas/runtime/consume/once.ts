import { MailroomError, type PoisonMessage } from '../base/errors.ts';
import type { JsonOf } from '../base/json.ts';
import { jsonFault } from '../base/json-fault.ts';
import { isNothingHappened } from '../base/nothing-happened.ts';
import { poison } from '../base/poison.ts';
import { maskedPath } from '../events/payload-issues.ts';
import { idempotencyKey } from '../inbox/idempotency-key.ts';
import { type EffectCall, type EffectEnd, effectIn } from '../inbox/inbox-effect.ts';
import { backoffMs } from '../store/backoff.ts';
import type { StoredEffect } from '../store/stored-effect.ts';
import type { ClaimedMessage, Effects, Received } from './consumer-context.ts';

/** The maximum size of an effect's stored result: it is part of its message's row, and each write of that row pays for it. */
const EFFECT_RESULT_MAX_BYTES = 4 * 1024;

/** The time before the function's end at which it stops retrying to store a result, so that the message can still be released, milliseconds. */
const STORE_MARGIN_MS = 3_000;

/** `constructor` is a name that the SDK cannot store in a map. */
export const EFFECT_NAME = /^(?!constructor$)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Runs a side effect under its own key, unless its result is already stored. */
export async function runOnce<T>(
  claimed: ClaimedMessage,
  name: string,
  effect: (idempotencyKey: string) => Promise<T>,
): Promise<JsonOf<T>> {
  const { claim, effects } = claimed;
  const { asked, running } = effects;
  refuseName(effects, name);
  effects.runs += 1;
  const call = { claim, name, run: effects.runs };
  asked.add(name);
  const result = perform(claimed, call, effect).finally(() => running.delete(name));
  running.set(name, result);
  return (await result) as never;
}

function refuseName({ running, succeeded }: Effects, name: string): void {
  if (!EFFECT_NAME.test(name)) {
    throw new MailroomError(
      'BAD_EFFECT_NAME',
      `ctx.once: "${name}" is not a valid effect name; use 1 to 64 letters, digits, dots, dashes and underscores, and not "constructor".`,
    );
  }
  if (running.has(name)) {
    throw new MailroomError(
      'EFFECT_RUNNING',
      `ctx.once: effect "${name}" is already running in this handler; await it first.`,
    );
  }
  if (succeeded.has(name)) {
    // It would receive the first call's result without running: only the first round of a loop would happen.
    throw new MailroomError(
      'EFFECT_REPEATED',
      `ctx.once: effect "${name}" has already run in this handler; give each effect its own name, such as "${name}-2".`,
    );
  }
}

/** An effect that has happened, now or before, is not run again under this claim. */
async function perform(
  claimed: ClaimedMessage,
  call: EffectCall,
  effect: (idempotencyKey: string) => Promise<unknown>,
): Promise<unknown> {
  const { config, effects } = claimed;
  const { claim, name } = call;
  const completed = completedBefore(call) ?? (await started(claimed, call));
  if (completed !== undefined) {
    effects.succeeded.add(name);
    return parsed(completed.result);
  }
  const mayHaveHappened = isInDoubt(effects, name);
  let result: unknown;
  try {
    result = await effect(idempotencyKey(config.consumer, claim.message.eventId, name));
    effects.ended.set(name, 'completed'); // even if its result cannot be stored
    effects.succeeded.add(name);
  } catch (error) {
    // What this run's provider says is not true of an earlier run that may have happened.
    const nothingHappened = isNothingHappened(error) && !mayHaveHappened;
    effects.ended.set(name, nothingHappened ? 'nothing-happened' : 'failed');
    await releaseEffect(claimed, call, { status: 'RELEASED', error, nothingHappened });
    throw error;
  }
  const json = jsonOf(name, result); // if it cannot be stored, the effect stays IN_PROGRESS: it has happened
  await storeResult(claimed, call, json);
  return parsed(json); // parsed, so that the handler gets the same value on the first run and on a retry
}

/** Returns true if an earlier run of an effect, under this claim or another one, may have happened. */
function isInDoubt({ ended, before }: Effects, name: string): boolean {
  const state = ended.get(name) ?? before.get(name);
  return state !== undefined && state !== 'nothing-happened';
}

/** Starts an effect. One whose start may have been stored is recorded as run. */
async function started({ inbox, effects }: ClaimedMessage, call: EffectCall) {
  try {
    return await inbox.startEffect(call);
  } catch (error) {
    if (inbox.isOutage(error)) effects.ended.set(call.name, 'unknown');
    throw error;
  }
}

/** A completed effect never changes, so the claim's own reading of the row is enough: a refused start would cost a write of it. */
function completedBefore({ claim, name }: EffectCall): Pick<StoredEffect, 'result'> | undefined {
  const effect = effectIn(claim.effects, name);
  return effect?.status === 'COMPLETED' ? effect : undefined;
}

/** The effect has happened, so storing its result is tried for as long as the table may recover before the function ends. */
async function storeResult(
  { inbox, clock, random }: Received,
  call: EffectCall,
  result: string | undefined,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await inbox.finishEffect(call, { status: 'COMPLETED', result });
    } catch (error) {
      const pauseMs = backoffMs(attempt, 50, 1_000, random);
      if (!inbox.isOutage(error) || clock.now() + pauseMs > call.claim.endsBy - STORE_MARGIN_MS) throw error;
      await clock.sleep(pauseMs);
    }
  }
}

/** If this write fails, the effect stays IN_PROGRESS, and the next attempt waits until this function has certainly stopped. */
async function releaseEffect(
  { inbox, telemetry }: Received,
  call: EffectCall,
  end: EffectEnd,
): Promise<void> {
  try {
    await inbox.finishEffect(call, end);
  } catch (unwritten) {
    telemetry.log.warn('A failed effect could not be released', {
      effect: call.name,
      error: unwritten as Error,
    });
  }
}

/** Resolves when the running effects have ended. The handler's signal is aborted by then, so no other effect starts. */
export async function effectsIdle({ effects }: ClaimedMessage): Promise<void> {
  await Promise.allSettled(effects.running.values());
}

function jsonOf(name: string, result: unknown): string | undefined {
  const fault = jsonFault(result);
  if (fault !== undefined) {
    const what = `${maskedPath('result', fault.path)} is ${fault.kind}`;
    throw notStorable(name, `cannot be written as JSON: ${what}. ${fault.remedy}`);
  }
  const json = JSON.stringify(result) as string | undefined;
  const bytes = Buffer.byteLength(json ?? '');
  if (bytes <= EFFECT_RESULT_MAX_BYTES) return json;
  throw notStorable(name, `has ${bytes} bytes of JSON; at most ${EFFECT_RESULT_MAX_BYTES} are stored.`);
}

function parsed(json: string | undefined): unknown {
  return json === undefined ? undefined : JSON.parse(json);
}

/** The effect has happened and would happen again on each retry, so the message is not retried. */
function notStorable(name: string, why: string): PoisonMessage {
  return poison(
    'EFFECT_RESULT_NOT_STORABLE',
    `The result of effect "${name}" ${why} Return only the part that the handler needs.`,
  );
}
