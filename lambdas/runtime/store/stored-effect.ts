/** The state of a side effect. `RELEASED`: the attempt failed, and the effect may run again. */
export type EffectStatus = 'IN_PROGRESS' | 'COMPLETED' | 'RELEASED';

/** A side effect of a handler, in its message's inbox row. */
export interface StoredEffect {
  readonly status: EffectStatus;
  /** The fence of the claim that started it. */
  readonly fence: string;
  /** The number of the `ctx.once` call that started it, from 1; with the fence, it identifies the only call that may finish it. */
  readonly run: number;
  /** The latest time at which the function that started it is stopped: until then, it may still be running. */
  readonly endsBy: number;
  readonly startedAt: number;
  readonly completedAt?: number | undefined;
  /** The effect's return value, as JSON; absent if it returned nothing. */
  readonly result?: string | undefined;
  /** The time at which a RELEASED effect ended, epoch milliseconds. */
  readonly endedAt?: number | undefined;
  /** The error with which a RELEASED effect ended; at most 200 characters. */
  readonly error?: string | undefined;
  /** The error of a RELEASED effect said that nothing happened. Absent: it may have happened. */
  readonly nothingHappened?: boolean | undefined;
}

/**
 * The end of a side effect of a message, as far as its row shows. Only `nothing-happened` says that its provider did nothing:
 * `completed`: its result is stored; `failed`: it ended with an error, after which it may have happened; `running`: its function has not
 * certainly stopped; `unknown`: its function stopped and stored no result.
 */
export type EffectState = 'completed' | 'failed' | 'running' | 'unknown' | 'nothing-happened';
