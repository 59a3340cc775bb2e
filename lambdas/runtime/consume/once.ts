import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import type { Context } from 'aws-lambda';
import { errorCode, MailroomError, PoisonMessage } from '../errors.ts';
import type { Claim } from '../store/inbox.ts';
import { asRow, type EffectRow, effectKey, expiresAt, SCHEMA } from '../store/rows.ts';
import { type Item, UPDATE_EACH_MAX } from '../store/table.ts';
import { type EffectDeps, EffectPersistence } from './effect-persistence.ts';
import type { JsonOf } from './json-of.ts';
import { reportUnstableEffects, type StoredEffect } from './unstable-effects.ts';

/** The longest stored result of an effect, in characters of JSON: it shares its item's 400 KB with little else. */
const EFFECT_RESULT_MAX_CHARS = 100_000;

const EFFECT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** The side effects of one claim. */
export interface Effects {
  /** Runs a side effect under its own key, unless its result is stored already. */
  once<T>(name: string, effect: (idempotencyKey: string) => Promise<T>): Promise<JsonOf<T>>;
  /** Resolves when none of them is running any more. */
  idle(): Promise<void>;
  /**
   * Only after the message is PROCESSED: lets TTL delete the effects' rows, and reports those of earlier attempts that
   * this one never asked for.
   *
   * @param wholeRun - whether the handler ran to its end, and so asked for every effect that it wants
   */
  expire(wholeRun: boolean): Promise<void>;
}

/** Makes the side effects of one claim. */
export function createEffects(deps: EffectDeps, claim: Claim): Effects {
  const { table, clock, consumer } = deps;
  const { eventId } = claim.message;
  const used = new Set<string>();
  const succeeded = new Set<string>();
  const running = new Map<string, Promise<unknown>>();
  let runs = 0;

  return {
    once: async (name, effect) => {
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
      const config = new IdempotencyConfig({
        lambdaContext: { getRemainingTimeInMillis: () => Math.max(1, claim.endsBy - clock.now()) } as Context,
      });
      if (!config.isEnabled()) {
        throw new MailroomError(
          'IDEMPOTENCY_DISABLED',
          'POWERTOOLS_IDEMPOTENCY_DISABLED is set: no side effect is run unprotected. Remove the variable from this function.',
        );
      }
      runs += 1;
      const idempotencyKey = `${consumer}:${eventId}:${name}`;
      const run = makeIdempotent(async (key: string) => plainJson(name, await effect(key)), {
        persistenceStore: new EffectPersistence(deps, claim, name, runs),
        config,
      });
      used.add(name);
      const result = run(idempotencyKey)
        .then((value) => {
          succeeded.add(name); // before it stops running: in between, it would be neither
          return value;
        })
        .finally(() => running.delete(name));
      running.set(name, result);
      try {
        return (await result) as never;
      } catch (error) {
        throw causeOf(error);
      }
    },

    idle: async () => {
      while (running.size > 0) await Promise.allSettled(running.values());
    },

    expire: async (wholeRun) => {
      const triedBefore = claim.attempt > 1 || claim.takenOver || claim.lastError !== undefined;
      const stored = triedBefore ? await storedEffects() : undefined;
      if (stored !== undefined && wholeRun) reportUnstableEffects(deps.telemetry, eventId, stored, used);
      const names = stored?.map(({ name }) => name) ?? [...used];
      if (names.length === 0) return;
      const set = { expiresAt: expiresAt(clock.now(), deps.inboxRetentionDays) };
      for (let i = 0; i < names.length; i += UPDATE_EACH_MAX) {
        await table.updateEach(
          names
            .slice(i, i + UPDATE_EACH_MAX)
            .map((name) => ({ key: effectKey(consumer, eventId, name), set, when: { schema: SCHEMA } })),
        );
      }
    },
  };

  /** Also the effects of earlier attempts, which this one may not have come to. */
  async function storedEffects(): Promise<StoredEffect[]> {
    const { PK, SK } = effectKey(consumer, eventId, '');
    const effects: StoredEffect[] = [];
    let cursor: Item | undefined;
    do {
      const page = await table.query({ pk: PK, skPrefix: SK, consistent: true, cursor });
      for (const row of page.items.map(asRow<EffectRow>)) {
        effects.push({ name: row.SK.slice(SK.length), status: row.status });
      }
      cursor = page.cursor;
    } while (cursor !== undefined);
    return effects;
  }
}

/** A result as it will be read back, so that the first run and a retry hand the handler the same. */
function plainJson(name: string, result: unknown): unknown {
  let json: string | undefined;
  try {
    json = JSON.stringify(result);
  } catch (error) {
    throw notStorable(name, `is no JSON (${errorCode(error)})`); // its message would name keys
  }
  if (json === undefined) return undefined;
  if (json.length > EFFECT_RESULT_MAX_CHARS) {
    throw notStorable(
      name,
      `has ${json.length} characters of JSON; at most ${EFFECT_RESULT_MAX_CHARS} are stored`,
    );
  }
  return JSON.parse(json);
}

/** The effect did happen, and would happen again with each retry: so there is none. */
function notStorable(name: string, why: string): PoisonMessage {
  return new PoisonMessage(
    `The result of effect "${name}" ${why}. Return only what the handler needs of it.`,
    { code: 'EFFECT_RESULT_NOT_STORABLE' },
  );
}

/** Powertools wraps what a persistence layer throws; the handler and the consumer want the error itself. */
function causeOf(error: unknown): unknown {
  if (
    error instanceof Error &&
    error.name === 'IdempotencyPersistenceLayerError' &&
    error.cause !== undefined
  ) {
    return error.cause;
  }
  return error;
}
