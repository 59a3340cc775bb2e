/** A call to a port whose outcome is not decided yet. */
export interface ScheduledCall<T> {
  /** Its label in a timeline. */
  readonly label: string;
  /** Executes the effect and returns the response. */
  readonly perform: () => Promise<T>;
  /** Set if it changes anything. A lost response to a read is the same as a failed read. */
  readonly effect: boolean;
  /** Set if it touches only this actor's own state: its order relative to others' calls then makes no difference. */
  readonly local?: boolean | undefined;
  /** Set if the client resends it automatically without a response. @default false */
  readonly resends?: boolean | undefined;
  /** Set if the actor may crash at it. @default true inside an invocation */
  readonly crashes?: boolean | undefined;
  /** Called if it goes on in a later invocation, because its own had answered before it ended. */
  readonly thawed?: (() => void) | undefined;
  /** Additional failures. @default none */
  readonly failures?: readonly CallFault<T>[] | undefined;
  /** Alternative responses that are possible at this moment, each at the cost of one fault. @default none */
  readonly otherAnswers?: (() => readonly CallFault<T>[]) | undefined;
}

/** A failure that is specific to a port. */
export interface CallFault<T> {
  readonly label: string;
  /** The error that the caller receives; absent if the call returns a response that reports the failure. */
  readonly error?: (() => Error) | undefined;
  /** Replaces the effect. @default no effect */
  readonly perform?: (() => Promise<T>) | undefined;
}

/** An outcome of a call. */
export interface CallOutcome {
  /** Empty for the ordinary outcome. */
  readonly label: string;
  readonly fault: boolean;
  /** Set if the effect happens now. */
  readonly effect: boolean;
  /** Replaces the call's own effect. */
  readonly perform?: (() => Promise<unknown>) | undefined;
  /** Set if the effect happens later. */
  readonly later?: boolean | undefined;
  /** Set if the call is sent again: it stays in flight. */
  readonly again?: boolean | undefined;
  /** The change of the caller's clock in milliseconds. */
  readonly clockMs?: number | undefined;
  /** Set if the function crashes. */
  readonly crash?: boolean | undefined;
  /** The error that the caller receives instead of the response. */
  readonly error?: (() => Error) | undefined;
}

const ORDINARY: CallOutcome = { label: '', fault: false, effect: true };

/** The backward step of a clock that is corrected, in milliseconds: the largest difference between clocks. */
const STEP_BACK_MS = 1_900;

/** The number of times a client resends one call. */
const RESENDS_MAX = 1;

/**
 * All outcomes of a call: the ordinary one, a crash of its function before or after the effect, a lost response, a late effect,
 * and the failures specific to its port.
 */
export function outcomesOf(
  call: ScheduledCall<unknown>,
  insideInvocation: boolean,
  resent: number,
): CallOutcome[] {
  const outcomes: CallOutcome[] = [ORDINARY];
  const fault = (label: string, how: Omit<CallOutcome, 'label' | 'fault'>) =>
    outcomes.push({ label, fault: true, ...how });

  if (call.crashes ?? insideInvocation) {
    fault('crash before it', { effect: false, crash: true });
    if (call.effect) {
      fault('crash after it', { effect: true, crash: true });
      fault('crash; it takes effect later', { effect: false, later: true, crash: true });
    }
  }
  if (insideInvocation && resent === 0) {
    fault('its clock steps back first', { effect: false, again: true, clockMs: -STEP_BACK_MS });
  }
  if (call.effect && insideInvocation) {
    fault('the answer is lost', { effect: true, error: timeout });
    fault('no answer; it takes effect later', { effect: false, later: true, error: timeout });
    fault('no answer; it never takes effect', { effect: false, error: timeout });
    if (call.resends && resent < RESENDS_MAX) {
      fault('the answer is lost, and it is sent again', { effect: true, again: true });
      fault('no answer, it is sent again; the first takes effect later', {
        effect: false,
        later: true,
        again: true,
      });
    }
  }
  for (const { label, error, perform } of [...(call.failures ?? []), ...(call.otherAnswers?.() ?? [])]) {
    fault(label, { effect: perform !== undefined, perform, error });
  }
  return outcomes;
}

function timeout(): Error {
  return named('TimeoutError', 'No answer came in time');
}

/** An error as an AWS client throws it, identified by its name. */
export function named(name: string, message: string): Error {
  const error = new Error(message);
  error.name = name;
  return error;
}
