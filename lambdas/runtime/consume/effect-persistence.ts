import {
  IdempotencyItemAlreadyExistsError,
  IdempotencyRecordStatus,
} from '@aws-lambda-powertools/idempotency';
import { BasePersistenceLayer, IdempotencyRecord } from '@aws-lambda-powertools/idempotency/persistence';
import { CLOCK_SKEW_MS, type Clock } from '../clock.ts';
import { errorCode, FenceLost, isConditionFailed, isTransactionCancelled, MailroomError } from '../errors.ts';
import type { RandomBytes } from '../store/event-id.ts';
import type { Claim } from '../store/inbox.ts';
import { heldBy } from '../store/inbox-conditions.ts';
import { backoffMs, transactWithRetry } from '../store/retry.ts';
import { asRow, type EffectRow, effectKey, inboxKey, SCHEMA } from '../store/rows.ts';
import type { Table } from '../store/table.ts';
import type { Telemetry } from '../telemetry.ts';

/** How often the result of an effect that did happen is tried to be stored. */
const STORE_TRIES = 4;

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

/** What the side effects of a claim need. */
export interface EffectDeps {
  readonly table: Table;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly telemetry: Telemetry;
  readonly consumer: string;
  readonly inboxRetentionDays: number;
}

/**
 * Powertools Idempotency on our rows. What Powertools' own DynamoDB layer does unconditionally is conditional here.
 * Nothing is ever deleted, and nothing expires before the message is PROCESSED.
 *
 *     start              finish                      another worker may start
 *       |---- IN_PROGRESS --|---- ... ----| endsBy ----|
 *       |        run        |             | the function is stopped: CLOCK_SKEW_MS later for every clock
 *
 * One instance is one call of `ctx.once`, named by the claim's fence and the call's number, `run`. An effect starts only
 * while the message is ours. Its COMPLETED or RELEASED is conditional on that very call, because a write that timed out
 * may land late: after the handler has tried the effect again under the same claim. It is not conditional on the
 * message: what has happened is stored even when the lease is lost.
 */
export class EffectPersistence extends BasePersistenceLayer {
  readonly #deps: EffectDeps;
  readonly #claim: Claim;
  readonly #name: string;
  readonly #run: number;

  /** @param run - which call of `ctx.once` under this claim it is, from 1 */
  constructor(deps: EffectDeps, claim: Claim, name: string, run: number) {
    super();
    this.#deps = deps;
    this.#claim = claim;
    this.#name = name;
    this.#run = run;
  }

  get #key() {
    return effectKey(this.#deps.consumer, this.#claim.message.eventId, this.#name);
  }

  /**
   * IN_PROGRESS, where one of these holds:
   *
   * - there is no row, or the effect failed and was released;
   * - it was started by an earlier call of this claim, which is over: calls of one effect follow one another. A start that
   *   lands late must not take the place of a later call, whose result could then not be stored;
   * - the function that started it is stopped for certain, by every clock.
   */
  protected async _putRecord(record: IdempotencyRecord): Promise<void> {
    const { clock, consumer } = this.#deps;
    const now = clock.now();
    const row: Omit<EffectRow, 'PK' | 'SK'> = {
      schema: SCHEMA,
      status: 'IN_PROGRESS',
      fence: this.#claim.fence,
      run: this.#run,
      endsBy: this.#claim.endsBy,
      startedAt: now,
    };
    const names = ['schema', 'status', 'fence', 'run', 'endsBy', 'startedAt'] as const;
    try {
      await transactWithRetry(this.#deps, [
        heldBy(this.#claim, inboxKey(consumer, this.#claim.message.eventId)),
        {
          // An update, though it writes the row anew: nobody may put an inbox row (the table's own policy). One that is left
          // of a message whose own row has expired must not expire while its effect runs.
          Update: {
            Key: { ...this.#key },
            UpdateExpression: `SET ${names.map((name) => `#${name} = :${name}`).join(', ')} REMOVE expiresAt`,
            ConditionExpression:
              'attribute_not_exists(PK) OR #status = :RELEASED OR ' +
              '(#status = :IN_PROGRESS AND ((#fence = :fence AND #run <= :run) OR #endsBy < :stopped))',
            ExpressionAttributeNames: Object.fromEntries(names.map((name) => [`#${name}`, name])),
            ExpressionAttributeValues: {
              ...Object.fromEntries(names.map((name) => [`:${name}`, row[name]])),
              ':RELEASED': 'RELEASED',
              ':IN_PROGRESS': 'IN_PROGRESS',
              ':stopped': now - CLOCK_SKEW_MS,
            },
            ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
          },
        },
      ]);
    } catch (error) {
      if (!isTransactionCancelled(error)) throw error;
      const [held, started] = error.reasons;
      if (held?.code === 'ConditionalCheckFailed') throw this.#fenceLost('was not started');
      if (started?.code !== 'ConditionalCheckFailed' || started.item === undefined) throw error;
      const existing = asRow<EffectRow>(started.item);
      if (existing.status !== 'COMPLETED')
        throw new EffectInProgress(this.#name, existing.endsBy + CLOCK_SKEW_MS);
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
          ConditionExpression: '#status = :IN_PROGRESS AND fence = :fence AND #run = :run',
          ExpressionAttributeNames: {
            '#status': 'status',
            '#run': 'run',
            ...Object.fromEntries(names.map((name) => [`#${name}`, name])),
          },
          ExpressionAttributeValues: {
            ':status': status,
            ':IN_PROGRESS': 'IN_PROGRESS',
            ':fence': this.#claim.fence,
            ':run': this.#run,
            ...Object.fromEntries(names.map((name) => [`:${name}`, set[name]])),
          },
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        },
      });
    } catch (error) {
      if (!isConditionFailed(error)) throw error;
      const row = error.item === undefined ? undefined : asRow<EffectRow>(error.item);
      const ours = row?.fence === this.#claim.fence && row.run === this.#run;
      if (ours && row.status === status) return; // it was us, the answer was lost
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
