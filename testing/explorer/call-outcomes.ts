/** One call to a port, before it is known how it ends. */
export interface ScheduledCall<T> {
  /** As it stands in a timeline. */
  readonly label: string;
  /** Makes the effect and gives the answer. */
  readonly perform: () => Promise<T>;
  /** Whether it changes anything: a read that is lost is the same as one that failed. */
  readonly effect: boolean;
  /** Whether it touches only what this actor holds: then its order among the calls of others makes no difference. */
  readonly local?: boolean | undefined;
  /** Whether the client sends it again by itself when no answer comes. @default false */
  readonly resends?: boolean | undefined;
  /** Whether the actor may crash at it. @default true inside an invocation */
  readonly crashes?: boolean | undefined;
  /** How else it may fail. @default none */
  readonly failures?: readonly CallFault<T>[] | undefined;
  /** Other answers that it may give at this moment, each for one fault. @default none */
  readonly otherAnswers?: (() => readonly CallFault<T>[]) | undefined;
}

/** A way in which a call fails that its port knows of. */
export interface CallFault<T> {
  readonly label: string;
  /** What the caller sees; absent when the call answers, but not with good news. */
  readonly error?: (() => Error) | undefined;
  /** What happens instead of the whole effect. @default nothing */
  readonly perform?: (() => Promise<T>) | undefined;
}

/** How a call ends. */
export interface CallOutcome {
  /** Empty for the ordinary end. */
  readonly label: string;
  readonly fault: boolean;
  /** Whether the effect happens now. */
  readonly effect: boolean;
  /** Instead of the call's own effect. */
  readonly perform?: (() => Promise<unknown>) | undefined;
  /** Whether the effect happens at some later time. */
  readonly later?: boolean | undefined;
  /** Whether the call is sent again: it stays under way. */
  readonly again?: boolean | undefined;
  /** By how much the caller's clock moves. */
  readonly clockMs?: number | undefined;
  /** Whether the function dies. */
  readonly crash?: boolean | undefined;
  /** What the caller sees instead of the answer. */
  readonly error?: (() => Error) | undefined;
}

const ORDINARY: CallOutcome = { label: '', fault: false, effect: true };

/** How far a clock that is put right steps back, milliseconds: as much as clocks may differ. */
const STEP_BACK_MS = 1_900;

/** How often a client sends one call again. */
const RESENDS_MAX = 1;

/**
 * Every way in which a call can end: as it should, with the crash of its function before or after the effect, with
 * an answer that is lost, with an effect that comes late, or with a failure that its port knows of.
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

/** An error as a client of AWS throws it: told apart by its name. */
export function named(name: string, message: string): Error {
  const error = new Error(message);
  error.name = name;
  return error;
}
