import {
  IdempotencyConfig,
  IdempotencyItemAlreadyExistsError,
  IdempotencyRecordStatus,
  makeIdempotent,
} from '@aws-lambda-powertools/idempotency';
import { BasePersistenceLayer, IdempotencyRecord } from '@aws-lambda-powertools/idempotency/persistence';
import type { Context } from 'aws-lambda';
import type { Clock } from './clock.ts';
import {
  errorCode,
  FenceLost,
  isConditionFailed,
  isTransactionCancelled,
  MailroomError,
  PoisonMessage,
} from './errors.ts';
import type { RandomBytes } from './event-id.ts';
import { type Claim, heldBy } from './inbox-conditions.ts';
import { backoffMs, transactWithRetry } from './retry.ts';
import { asRow, type EffectRow, effectKey, expiresAt, inboxKey, SCHEMA } from './rows.ts';
import { type Item, type Table, UPDATE_EACH_MAX } from './table.ts';
import type { Telemetry } from './telemetry.ts';

/** The longest stored result of an effect, in characters of JSON: it shares its item's 400 KB with little else. */
const EFFECT_RESULT_MAX_CHARS = 100_000;

/** How often the result of an effect that did happen is tried to be stored. */
const STORE_TRIES = 4;

const EFFECT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** An effect may still be running under an earlier claim of this message: give it back, and come again after `until`. */
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

export interface EffectDeps {
  readonly table: Table;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly telemetry: Telemetry;
  readonly consumer: string;
  readonly inboxRetentionDays: number;
}

/** The side effects of one claim. */
export interface Effects {
  /** Runs a side effect under its own key, unless its result is stored already. */
  once<T>(name: string, effect: (idempotencyKey: string) => Promise<T>): Promise<T>;
  /** Resolves when none of them is running any more. */
  idle(): Promise<void>;
  /** Whether one of them is running. */
  running(): boolean;
  /** Lets TTL delete the effects' rows: only after the message is PROCESSED. */
  expire(): Promise<void>;
}

/** Makes the side effects of one claim. */
export function createEffects(deps: EffectDeps, claim: Claim): Effects {
  const { table, clock, consumer } = deps;
  const { eventId } = claim.message;
  const used = new Set<string>();
  const running = new Map<string, Promise<unknown>>();

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
      const config = new IdempotencyConfig({
        lambdaContext: { getRemainingTimeInMillis: () => Math.max(1, claim.endsBy - clock.now()) } as Context,
      });
      if (!config.isEnabled()) {
        throw new MailroomError(
          'IDEMPOTENCY_DISABLED',
          'POWERTOOLS_IDEMPOTENCY_DISABLED is set: no side effect is run unprotected. Remove the variable from this function.',
        );
      }
      const idempotencyKey = `${consumer}:${eventId}:${name}`;
      const run = makeIdempotent(async (key: string) => plainJson(name, await effect(key)), {
        persistenceStore: new EffectPersistence(deps, claim, name),
        config,
      });
      used.add(name);
      const result = run(idempotencyKey).finally(() => running.delete(name));
      running.set(name, result);
      try {
        return (await result) as never;
      } catch (error) {
        throw causeOf(error);
      }
    },

    running: () => running.size > 0,

    idle: async () => {
      while (running.size > 0) await Promise.allSettled(running.values());
    },

    expire: async () => {
      const triedBefore = claim.attempt > 1 || claim.lastError !== undefined;
      const names = triedBefore ? await effectNames() : [...used];
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
  async function effectNames(): Promise<string[]> {
    const { PK, SK } = effectKey(consumer, eventId, '');
    const names: string[] = [];
    let cursor: Item | undefined;
    do {
      const page = await table.query({ pk: PK, skPrefix: SK, cursor });
      names.push(...page.items.map((item) => String(item.SK).slice(SK.length)));
      cursor = page.cursor;
    } while (cursor !== undefined);
    return names;
  }
}

/**
 * Powertools Idempotency on our rows. What Powertools' own DynamoDB layer does unconditionally is conditional
 * here: an effect starts only while the message is ours, in one transaction; its completion and its release are
 * updates under this claim's fence. Nothing is ever deleted, and nothing expires before the message is PROCESSED.
 */
class EffectPersistence extends BasePersistenceLayer {
  readonly #deps: EffectDeps;
  readonly #claim: Claim;
  readonly #name: string;

  constructor(deps: EffectDeps, claim: Claim, name: string) {
    super();
    this.#deps = deps;
    this.#claim = claim;
    this.#name = name;
  }

  get #key() {
    return effectKey(this.#deps.consumer, this.#claim.message.eventId, this.#name);
  }

  /** IN_PROGRESS: absent before, or released, or its function is stopped for certain, or ours already. */
  protected async _putRecord(record: IdempotencyRecord): Promise<void> {
    const { clock, consumer } = this.#deps;
    const now = clock.now();
    const row: EffectRow = {
      ...this.#key,
      schema: SCHEMA,
      status: 'IN_PROGRESS',
      fence: this.#claim.fence,
      endsBy: this.#claim.endsBy,
      startedAt: now,
    };
    try {
      await transactWithRetry(this.#deps, [
        heldBy(this.#claim, inboxKey(consumer, this.#claim.message.eventId)),
        {
          Put: {
            Item: { ...row },
            ConditionExpression:
              'attribute_not_exists(PK) OR #status = :RELEASED OR ' +
              '(#status = :IN_PROGRESS AND (fence = :fence OR endsBy < :now))',
            ExpressionAttributeNames: { '#status': 'status' },
            ExpressionAttributeValues: {
              ':RELEASED': 'RELEASED',
              ':IN_PROGRESS': 'IN_PROGRESS',
              ':fence': this.#claim.fence,
              ':now': now,
            },
            ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
          },
        },
      ]);
    } catch (error) {
      if (!isTransactionCancelled(error)) throw error;
      const [held, put] = error.reasons;
      if (held?.code === 'ConditionalCheckFailed') throw this.#fenceLost('was not started');
      if (put?.code !== 'ConditionalCheckFailed' || put.item === undefined) throw error;
      const existing = asRow<EffectRow>(put.item);
      if (existing.status !== 'COMPLETED') throw new EffectInProgress(this.#name, existing.endsBy);
      throw new IdempotencyItemAlreadyExistsError(
        `Effect ${this.#name} is completed`,
        this.#record(record.idempotencyKey, existing),
      );
    }
  }

  protected async _getRecord(idempotencyKey: string): Promise<IdempotencyRecord> {
    const item = await this.#deps.table.get(this.#key, { consistent: true });
    if (item === undefined) throw new MailroomError('EFFECT_MISSING', `Effect ${this.#name} has no row`);
    return this.#record(idempotencyKey, asRow<EffectRow>(item));
  }

  /** COMPLETED, with the result. The effect did happen, so this is worth several tries. */
  protected async _updateRecord(record: IdempotencyRecord): Promise<void> {
    const { clock, random } = this.#deps;
    const result = record.responseData === undefined ? undefined : JSON.stringify(record.responseData);
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#finish('COMPLETED', {
          completedAt: clock.now(),
          ...(result === undefined ? {} : { result }),
        });
        return;
      } catch (error) {
        if (errorCode(error) === 'FENCE_LOST' || attempt >= STORE_TRIES) throw error;
        await clock.sleep(backoffMs(attempt, 50, 1_000, random));
      }
    }
  }

  /**
   * RELEASED: the effect failed, the next attempt runs it again under the same key. Where that cannot be written,
   * the effect is left IN_PROGRESS, and the next attempt waits until this function is stopped for certain.
   */
  protected async _deleteRecord(): Promise<void> {
    try {
      await this.#finish('RELEASED', {});
    } catch (error) {
      this.#deps.telemetry.log.warn('An effect that failed could not be released', {
        eventId: this.#claim.message.eventId,
        effect: this.#name,
        error: error as Error,
      });
    }
  }

  async #finish(status: 'COMPLETED' | 'RELEASED', set: Record<string, string | number>): Promise<void> {
    const names = Object.keys(set);
    try {
      await this.#deps.table.write({
        Update: {
          Key: { ...this.#key },
          UpdateExpression: `SET #status = :status${names.map((name) => `, #${name} = :${name}`).join('')}`,
          ConditionExpression: '#status = :IN_PROGRESS AND fence = :fence',
          ExpressionAttributeNames: {
            '#status': 'status',
            ...Object.fromEntries(names.map((name) => [`#${name}`, name])),
          },
          ExpressionAttributeValues: {
            ':status': status,
            ':IN_PROGRESS': 'IN_PROGRESS',
            ':fence': this.#claim.fence,
            ...Object.fromEntries(names.map((name) => [`:${name}`, set[name]])),
          },
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        },
      });
    } catch (error) {
      if (!isConditionFailed(error)) throw error;
      const row = error.item === undefined ? undefined : asRow<EffectRow>(error.item);
      if (row?.fence === this.#claim.fence && row.status === status) return; // it was us, the answer was lost
      throw this.#fenceLost('ran, but its result cannot be stored');
    }
  }

  #fenceLost(what: string): FenceLost {
    return new FenceLost(
      `Effect "${this.#name}" of message ${this.#claim.message.eventId} ${what}: the message is not this worker's any more`,
    );
  }

  #record(idempotencyKey: string, row: EffectRow): IdempotencyRecord {
    return new IdempotencyRecord({
      idempotencyKey,
      status:
        row.status === 'COMPLETED' ? IdempotencyRecordStatus.COMPLETED : IdempotencyRecordStatus.INPROGRESS,
      ...(row.result === undefined ? {} : { responseData: JSON.parse(row.result) }),
    });
  }
}

/** A result as it will be read back, so that the first run and a retry hand the handler the same. */
function plainJson(name: string, result: unknown): unknown {
  let json: string | undefined;
  try {
    json = JSON.stringify(result);
  } catch (error) {
    throw notStorable(name, `is no JSON: ${String(error)}`, error);
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
function notStorable(name: string, why: string, cause?: unknown): PoisonMessage {
  return new PoisonMessage(
    `The result of effect "${name}" ${why}. Return only what the handler needs of it.`,
    {
      code: 'EFFECT_RESULT_NOT_STORABLE',
      cause,
    },
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
