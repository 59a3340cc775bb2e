import { isMailroomError, MailroomError } from '../base/errors.ts';
import { isPoison } from '../base/poison.ts';
import type { HandledEvent } from '../events/external-event.ts';
import type { LogFields, Telemetry } from '../observe/telemetry.ts';
import { outOfTime, RESPONSE_MARGIN_MS } from './out-of-time.ts';
import { TrackedPromise } from './tracked-promise.ts';

/** One run of a handler, as an {@link Around} receives it. */
export interface HandledRun {
  /**
   * The events of the run, validated, as the handler receives them: one, or those of a batch handler. Each is a frozen copy, whose `data` is the
   * object that the handler receives.
   */
  readonly events: readonly [HandledEvent, ...HandledEvent[]];
  /** As those of the handler's context. */
  readonly logFields: LogFields;
  /** Returns the number of milliseconds until the function is stopped. */
  remainingMs(): number;
}

/**
 * A function around each run of each handler of a consumer, e.g. for a tenant's context, a trace or a check. `next` runs the handler, and rejects with
 * its error. Call it once, and await or return it. The handler's outcome is that of the message,
 * whatever the function makes of it. If it throws, the message fails as if its handler had thrown, unless the handler has failed or committed.
 *
 * It does not run for heartbeats, nor around a `rejected` function.
 *
 * @param next - runs the handler. @throws the handler's error
 *
 * @example
 * ```ts
 * const inTenant: Around = async ({ events: [event] }, next) => tenants.run(tenantOf(event), next);
 * ```
 */
export type Around = (run: HandledRun, next: () => Promise<void>) => Promise<void>;

/** @throws `BAD_CONSUMER` if untyped code passes something else than a function */
export function checkAround(around: unknown): void {
  if (around === undefined || typeof around === 'function') return;
  throw new MailroomError(
    'BAD_CONSUMER',
    `around is of type ${around === null ? 'null' : typeof around}; it must be a function: around: async ({ events }, next) => { await next(); }.`,
  );
}

/** The end of a handler, or of the function around it. */
type RunEnd<T> =
  | { readonly is: 'returned'; readonly result: T }
  | { readonly is: 'threw'; readonly error: unknown };

/** A handler that is to run inside an {@link Around}. */
interface HandlerInside<T> {
  readonly around: Around | undefined;
  readonly events: readonly HandledEvent[];
  readonly ctx: Pick<HandledRun, 'logFields' | 'remainingMs'>;
  readonly handle: () => Promise<T>;
  /** Called when the function breaks a rule while the handler runs, which may then commit nothing more. @default a failure is enough */
  readonly refuse?: ((error: MailroomError) => void) | undefined;
  /** Logs an error of the function that does not decide the outcome. @default it is not logged */
  readonly telemetry?: Pick<Telemetry, 'log'> | undefined;
}

/**
 * Runs a handler, inside the consumer's function if it has one.
 *
 * @returns the handler's result
 * @throws poison that the handler threw; otherwise `BAD_AROUND`, `NOT_AWAITED` if the function broke a rule, with the handler's error as its cause; otherwise the handler's error, or else the function's
 */
export async function runInside<T>(inside: HandlerInside<T>): Promise<T> {
  const { around, events, ctx, handle } = inside;
  if (around === undefined) return handle();
  const { next, close } = nextOf(inside);
  const copies = events.map((event) => Object.freeze({ ...event })) as [HandledEvent, ...HandledEvent[]];
  const run = { events: copies, logFields: ctx.logFields, remainingMs: () => ctx.remainingMs() };
  const end = await close(await endOf(async () => around(run, next)));
  return resultOf(end);
}

/** The `next` of one run, and the end of the run after the function's own end. */
function nextOf<T>({ ctx, handle, refuse, telemetry }: HandlerInside<T>) {
  let work: { readonly end: Promise<RunEnd<T>>; readonly told: TrackedPromise<void> } | undefined;
  let isUnderWay = false;
  let isOver = false;
  let broken: MailroomError | undefined;
  const breaks = (error: MailroomError) => {
    broken ??= error;
    refuse?.(error);
    return error;
  };
  const next = (): Promise<void> => {
    if (isOver) return tracked(Promise.reject(badAround('called next after its own end')));
    if (work !== undefined) return tracked(Promise.reject(breaks(badAround('called next twice'))));
    // After a wait in the function: its message has returned to the queue, and another worker may run it.
    if (ctx.remainingMs() <= RESPONSE_MARGIN_MS) return tracked(Promise.reject(outOfTime()));
    isUnderWay = true;
    const end = endOf(handle).finally(() => {
      isUnderWay = false;
    });
    work = { end, told: tracked(end.then(resultOf).then(() => {})) };
    return work.told;
  };
  const close = async (own: RunEnd<unknown>): Promise<RunEnd<T>> => {
    isOver = true;
    const failure = own.is === 'threw' ? { ...own, error: ownError(own.error) } : undefined;
    if (work === undefined)
      return failure ?? threw(badAround('did not call next, so the handler did not run'));
    if (isUnderWay || !work.told.handled) breaks(notAwaited(failure?.error));
    const end = await work.end;
    if (own.is === 'threw' && end.is === 'threw' && own.error !== end.error)
      telemetry?.log.warn('The function around the handler threw after the handler; the handler decides', {
        error: own.error as Error,
      });
    if (broken !== undefined && !(end.is === 'threw' && isPoison(end.error))) {
      if (end.is === 'threw' && !mayBeCausedBy(end.error, broken)) broken.cause = end.error;
      return threw(broken);
    }
    return end.is === 'threw' ? end : (failure ?? end);
  };
  return { next, close };
}

async function endOf<T>(run: () => Promise<T>): Promise<RunEnd<T>> {
  try {
    return { is: 'returned', result: await run() };
  } catch (error) {
    return threw(error);
  }
}

function resultOf<T>(end: RunEnd<T>): T {
  if (end.is === 'threw') throw end.error;
  return end.result;
}

function threw(error: unknown) {
  return { is: 'threw', error } as const;
}

/** The most causes of an error that are looked at: a handler can make a circle of them. */
const CAUSES_MAX = 10;

/** True for an error that has another one among its causes: that one cannot have it as its cause. */
function mayBeCausedBy(error: unknown, cause: Error): boolean {
  let next = error;
  for (let n = 0; n < CAUSES_MAX && next !== cause; n += 1) {
    if (!(next instanceof Error)) return false;
    next = next.cause;
  }
  return true;
}

/** A promise whose failure does not end the process, and that records whether it is awaited. */
function tracked(promise: Promise<void>): TrackedPromise<void> {
  return new TrackedPromise(promise, () => {});
}

/** Only a handler can say that its message is processed. */
function ownError(error: unknown): unknown {
  if (!isMailroomError(error, 'ALREADY_PROCESSED')) return error;
  return badAround('threw AlreadyProcessed, which only the handler can know', error);
}

function badAround(what: string, cause?: unknown): MailroomError {
  return new MailroomError(
    'BAD_AROUND',
    `The function around the handler ${what}. Call next once, and await or return it; throw PoisonMessage to reject the message.`,
    { cause },
  );
}

function notAwaited(cause: unknown): MailroomError {
  return new MailroomError(
    'NOT_AWAITED',
    'The function around the handler ended without awaiting next: the handler commits nothing more, and the message fails. Await or return next().',
    { cause },
  );
}
