import { isMailroomError } from '../base/errors.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import type { ConsumerContext } from './consumer-context.ts';
import { TrackedPromise } from './tracked-promise.ts';

/** The calls that a handler has made of its context. */
export interface HandlerCalls {
  readonly claimed: Pick<ConsumerContext, 'telemetry'>;
  /** All of them. */
  readonly calls: Promise<unknown>[];
  /** Those that have not ended, with the text that names each in an error. */
  readonly underWay: Map<TrackedPromise<unknown>, string>;
  /** The failures among these calls and any promises chained to them. */
  readonly failures: FailedCall[];
  readonly state: { readonly returned: boolean; readonly ended: boolean };
}

/** A failed call of a handler, or a failed promise that was chained to one. */
interface FailedCall {
  readonly what: string;
  readonly call: TrackedPromise<unknown>;
  readonly error: unknown;
  /** True if the call was under way when the handler returned, so that its listeners decided nothing. */
  readonly late: boolean;
}

/** The failures that the handler has not seen: without them, it would not know that its work is incomplete. */
export function unseenFailures({ failures }: HandlerCalls): FailedCall[] {
  return failures.filter(({ call, late }) => late || !call.handled);
}

/** Keeps the failure of an un-awaited call from ending the process, and records it so that it fails the message instead. */
export function listened<T>(run: HandlerCalls, what: string, promise: Promise<T>): Promise<T> {
  run.calls.push(promise);
  const tracked = new TrackedPromise(promise, (call, failure) => {
    const wasUnderWay = run.underWay.delete(call);
    if (failure === undefined) return;
    const { error } = failure;
    run.failures.push({ what, call, error, late: wasUnderWay && run.state.returned });
    if (run.state.ended && !call.handled) logUnhandled(run.claimed.telemetry, error);
  });
  run.underWay.set(tracked, what);
  return tracked;
}

/** Logs the failure of an un-awaited call that can no longer fail the message. A call that was too late was logged when it was made. */
export function logUnhandled(telemetry: Telemetry, error: unknown): void {
  if (isMailroomError(error, 'HANDLER_ENDED') || isMailroomError(error, 'AFTER_COMMIT')) return;
  telemetry.log.error('A call that a handler did not await has failed', { error: error as Error });
}
