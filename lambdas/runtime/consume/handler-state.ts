import type { MailroomError } from '../base/errors.ts';
import type { EffectInProgress } from '../inbox/inbox-effect.ts';
import type { Overtaken } from '../store/last-sequence.ts';

/** The reason for which a message waits, whatever its handler does. */
export type Blocked = EffectInProgress | Overtaken;

/** The state of one run of a leased handler, as far as it decides the outcome of its message. */
export interface HandlerState {
  readonly commit: CommitState;
  /** An effect may still be running elsewhere, or another event of the aggregate was applied: the message waits. */
  readonly blocked: Blocked | undefined;
  /**
   * A commit was refused because of a call that its handler did not await. From then on the run may neither start nor commit anything, and
   * the message fails, whatever its handler makes of the refusal: that call may be work that is not done.
   */
  readonly notAwaited: MailroomError | undefined;
  /** The last call that failed because the table was unreachable: no attempt is counted then. */
  readonly outage: { readonly error: unknown } | undefined;
  /** The number of table calls that the handler is waiting for. */
  readonly waiting: number;
  /** Set when the function's time ran out before the handler ended. `lostTimeToTable`: slow table calls used up its time. */
  readonly cutOff: { readonly lostTimeToTable: boolean } | undefined;
  /** True once the handler's function has returned or thrown; calls that it did not await may still be under way. */
  readonly returned: boolean;
  /** True once the handler has ended: un-awaited code may not start anything more. */
  readonly ended: boolean;
}

/** `unknown`: a commit whose response was lost, and which may still take effect. */
type CommitState =
  | { readonly kind: 'none' | 'running' | 'done' }
  | { readonly kind: 'unknown'; readonly error: unknown };

/** A change of a run's state. */
export type HandlerStep =
  /** A call was sent to the table, or the table has answered one: also with an error. */
  | { readonly is: 'table-called' | 'table-answered' }
  /** A commit has begun, was certainly not written, or was written. */
  | { readonly is: 'commit-begun' | 'commit-refused' | 'committed' }
  | { readonly is: 'commit-unknown'; readonly error: unknown }
  | { readonly is: 'blocked'; readonly error: Blocked }
  | { readonly is: 'not-awaited'; readonly error: MailroomError }
  | { readonly is: 'outage'; readonly error: unknown }
  | { readonly is: 'cut-off'; readonly lostTimeToTable: boolean }
  | { readonly is: 'returned' | 'ended' };

/** The state of a run whose handler has done nothing yet. */
export const NOT_STARTED: HandlerState = {
  commit: { kind: 'none' },
  blocked: undefined,
  notAwaited: undefined,
  outage: undefined,
  waiting: 0,
  cutOff: undefined,
  returned: false,
  ended: false,
};

/** Returns the state after a step. */
export function afterStep(state: HandlerState, step: HandlerStep): HandlerState {
  switch (step.is) {
    case 'table-called':
      return { ...state, waiting: state.waiting + 1 };
    case 'table-answered':
      return { ...state, waiting: state.waiting - 1 };
    case 'commit-begun':
      return { ...state, commit: { kind: 'running' } };
    case 'commit-refused':
      return { ...state, commit: { kind: 'none' } };
    case 'committed':
      return { ...state, commit: { kind: 'done' } };
    case 'commit-unknown':
      return { ...state, commit: { kind: 'unknown', error: step.error } };
    case 'blocked':
      return { ...state, blocked: step.error };
    case 'not-awaited':
      return { ...state, notAwaited: step.error };
    case 'outage':
      return { ...state, outage: { error: step.error } };
    case 'cut-off':
      return { ...state, cutOff: { lostTimeToTable: step.lostTimeToTable } };
    case 'returned':
      return { ...state, returned: true };
    case 'ended':
      return { ...state, ended: true };
  }
}
