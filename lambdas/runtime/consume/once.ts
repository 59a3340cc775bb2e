import { errorCode, isMailroomError, MailroomError, PoisonMessage } from '../errors.ts';
import type { Claim } from '../store/inbox.ts';
import { type EffectCall, finishEffect, startEffect } from '../store/inbox-effect.ts';
import { backoffMs } from '../store/retry.ts';
import { asRow, type EffectRow, effectKey, expiresAt, SCHEMA } from '../store/rows.ts';
import { UPDATE_EACH_MAX } from '../store/table.ts';
import { pagesOf } from '../store/table-requests.ts';
import type { ConsumerContext } from './consumer-context.ts';
import type { JsonOf } from './json-of.ts';
import { reportUnstableEffects, type StoredEffect } from './unstable-effects.ts';

/** The longest stored result of an effect, in characters of JSON: it shares its item's 400 KB with little else. */
const EFFECT_RESULT_MAX_CHARS = 100_000;

/** How often the result of an effect that did happen is tried to be stored. */
const STORE_TRIES = 4;

const EFFECT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** The side effects of one claim, as its handler has asked for them so far. */
export interface Effects {
  readonly ctx: ConsumerContext;
  readonly claim: Claim;
  readonly asked: Set<string>;
  readonly succeeded: Set<string>;
  readonly running: Map<string, Promise<unknown>>;
  /** How many calls there have been. */
  runs: number;
}

/** The side effects of a claim whose handler has not begun. */
export function effectsOf(ctx: ConsumerContext, claim: Claim): Effects {
  return { ctx, claim, asked: new Set(), succeeded: new Set(), running: new Map(), runs: 0 };
}

/** Runs a side effect under its own key, unless its result is stored already. */
export async function runOnce<T>(
  effects: Effects,
  name: string,
  effect: (idempotencyKey: string) => Promise<T>,
): Promise<JsonOf<T>> {
  const { ctx, claim, asked, succeeded, running } = effects;
  refuseName(effects, name);
  effects.runs += 1;
  const call = { claim, name, run: effects.runs };
  asked.add(name);
  const result = perform(ctx, call, effect)
    .then((value) => {
      succeeded.add(name); // before it stops running: in between, it would be neither
      return value;
    })
    .finally(() => running.delete(name));
  running.set(name, result);
  return (await result) as never;
}

function refuseName({ running, succeeded }: Effects, name: string): void {
  if (!EFFECT_NAME.test(name)) {
    throw new MailroomError(
      'BAD_EFFECT_NAME',
      `ctx.once: "${name}" is no name for an effect; allowed are 1 to 64 letters, digits, dots, dashes and underscores`,
    );
  }
  if (running.has(name)) {
    throw new MailroomError(
      'EFFECT_RUNNING',
      `ctx.once: effect "${name}" is already running in this handler; await it first`,
    );
  }
  if (succeeded.has(name)) {
    // It would be handed the first one's result and not run: of a loop, only the first round would happen.
    throw new MailroomError(
      'EFFECT_REPEATED',
      `ctx.once: effect "${name}" has run in this handler already; give each effect a name of its own, such as "${name}-2"`,
    );
  }
}

async function perform(
  ctx: ConsumerContext,
  call: EffectCall,
  effect: (idempotencyKey: string) => Promise<unknown>,
): Promise<unknown> {
  const completed = await startEffect(ctx.inbox, call);
  if (completed !== undefined) return parsed(completed.result);
  const idempotencyKey = `${ctx.config.consumer}:${call.claim.message.eventId}:${call.name}`;
  let json: string | undefined;
  try {
    json = jsonOf(call.name, await effect(idempotencyKey));
  } catch (error) {
    await releaseEffect(ctx, call);
    throw error;
  }
  await storeResult(ctx, call, json);
  return parsed(json); // as it will be read back, so that the first run and a retry hand the handler the same
}

/** The effect did happen, so storing its result is worth several tries. */
async function storeResult(
  { inbox, clock, random }: ConsumerContext,
  call: EffectCall,
  json: string | undefined,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await finishEffect(inbox, call, 'COMPLETED', json);
    } catch (error) {
      if (isMailroomError(error, 'FENCE_LOST') || attempt >= STORE_TRIES) throw error;
      await clock.sleep(backoffMs(attempt, 50, 1_000, random));
    }
  }
}

/** Where that cannot be written, the effect stays IN_PROGRESS, and the next attempt waits until this function is stopped for certain. */
async function releaseEffect({ inbox, telemetry }: ConsumerContext, call: EffectCall): Promise<void> {
  try {
    await finishEffect(inbox, call, 'RELEASED');
  } catch (error) {
    telemetry.log.warn('An effect that failed could not be released', {
      eventId: call.claim.message.eventId,
      effect: call.name,
      error: error as Error,
    });
  }
}

/** Resolves when no effect is running any more. */
export async function effectsIdle({ running }: Effects): Promise<void> {
  while (running.size > 0) await Promise.allSettled(running.values());
}

/**
 * Only after the message is PROCESSED: lets TTL delete the effects' rows, and reports those of earlier attempts that
 * this one never asked for.
 *
 * @param wholeRun - whether the handler ran to its end, and so asked for every effect that it wants
 */
export async function expireEffects({ ctx, claim, asked }: Effects, wholeRun: boolean): Promise<void> {
  const { eventId } = claim.message;
  const triedBefore = claim.attempt > 1 || claim.takenOver || claim.lastError !== undefined;
  const stored = triedBefore ? await storedEffects(ctx, eventId) : undefined;
  if (stored !== undefined && wholeRun) reportUnstableEffects(ctx.telemetry, eventId, stored, asked);
  const { consumer, inboxRetentionDays } = ctx.config;
  const set = { expiresAt: expiresAt(ctx.clock.now(), inboxRetentionDays) };
  const updates = (stored?.map(({ name }) => name) ?? [...asked]).map((name) => ({
    key: effectKey(consumer, eventId, name),
    set,
    when: { schema: SCHEMA },
  }));
  for (let i = 0; i < updates.length; i += UPDATE_EACH_MAX)
    await ctx.table.updateEach(updates.slice(i, i + UPDATE_EACH_MAX));
}

/** Also the effects of earlier attempts, which this one may not have come to. */
async function storedEffects({ config, table }: ConsumerContext, eventId: string): Promise<StoredEffect[]> {
  const { PK, SK } = effectKey(config.consumer, eventId, '');
  const effects: StoredEffect[] = [];
  for await (const { items } of pagesOf(table, { pk: PK, skPrefix: SK, consistent: true })) {
    for (const row of items.map(asRow<EffectRow>))
      effects.push({ name: row.SK.slice(SK.length), status: row.status });
  }
  return effects;
}

function jsonOf(name: string, result: unknown): string | undefined {
  let json: string | undefined;
  try {
    json = JSON.stringify(result);
  } catch (error) {
    throw notStorable(name, `is no JSON (${errorCode(error)})`); // its message would name keys
  }
  if (json === undefined || json.length <= EFFECT_RESULT_MAX_CHARS) return json;
  throw notStorable(
    name,
    `has ${json.length} characters of JSON; at most ${EFFECT_RESULT_MAX_CHARS} are stored`,
  );
}

function parsed(json: string | undefined): unknown {
  return json === undefined ? undefined : JSON.parse(json);
}

/** The effect did happen, and would happen again with each retry: so there is none. */
function notStorable(name: string, why: string): PoisonMessage {
  return new PoisonMessage(
    `The result of effect "${name}" ${why}. Return only what the handler needs of it.`,
    { code: 'EFFECT_RESULT_NOT_STORABLE' },
  );
}
