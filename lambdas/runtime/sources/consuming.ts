import { type Clock, withDeadline } from '../base/clock.ts';
import { MailroomError } from '../base/errors.ts';
import type { AnswerReason } from './message-answer.ts';

/** A message that was rejected, for the place where dead letters are kept. */
export interface SourceDeadLetter<M> {
  /** Names the consumer and the message: it is the same whenever this dead letter is kept, and another one for each consumer. */
  readonly id: string;
  /** The reason. Its inbox row has it, too. */
  readonly reason: AnswerReason;
  /** The message as the source delivered it. */
  readonly message: M;
}

/**
 * Keeps a dead letter, e.g. in another topic, and resolves when it is stored. After a crash it may be called again for the same message. If it
 * throws, or takes longer than 30 seconds, the message is delivered again after a minute.
 */
export type KeepDeadLetter<M> = (letter: SourceDeadLetter<M>) => Promise<unknown>;

/** A loop that consumes messages. */
export interface Consuming {
  /** Resolves after {@link Consuming.stop}. Rejects if the source ends the loop or a handler cannot be used: let the process end, and be started again. */
  readonly ended: Promise<void>;
  /**
   * Stops receiving, and resolves when the handlers that run have ended and their messages are answered, or after 25 seconds: a container is
   * killed after 30. Messages that were not answered by then are delivered again, and wait for the leases of their handlers.
   */
  stop(): Promise<void>;
}

/** Makes the function that keeps a message of a loop as a dead letter. */
export function keeping<M>(
  inbox: { readonly consumer: string },
  deadLetter: KeepDeadLetter<M>,
  id: string,
  message: M,
): (reason: AnswerReason) => Promise<unknown> {
  return (reason) => deadLetter({ id: `${inbox.consumer}/${id}`, reason, message });
}

/** The inside of a {@link Consuming}. */
export interface Loop extends Consuming {
  /** Aborted when the loop ends. */
  readonly signal: AbortSignal;
  /** Runs one message. If it throws, the loop fails. */
  run(work: () => Promise<void>): void;
  /** Ends the loop with an error, after the handlers that run. */
  fail(error: unknown): void;
}

/** The longest time for the running handlers when a loop stops: a container has 30 seconds, and its connection is closed afterwards, milliseconds. */
const STOP_MAX_MS = 25_000;

/** The share of it in which a source must confirm that it sends no more, milliseconds: it may be gone. */
const STOP_RECEIVING_MAX_MS = 3_000;

/**
 * Creates a loop.
 *
 * @param stopReceiving - called once, when the loop stops or fails; its errors are ignored: the connection may be gone
 */
export function createLoop(clock: Clock, stopReceiving: () => unknown): Loop {
  const over = new AbortController();
  const running = new Set<Promise<void>>();
  let ending: Promise<void> | undefined;
  let settle: { readonly resolve: () => void; readonly reject: (error: unknown) => void };
  const ended = new Promise<void>((resolve, reject) => {
    settle = { resolve, reject };
  });

  const end = async () => {
    const stopped = Promise.resolve()
      .then(stopReceiving)
      .catch(() => {});
    await withDeadline(clock, STOP_RECEIVING_MAX_MS, stopped, () => {});
    over.abort(); // after that, because what a loop requeues would come back to it
    await withDeadline(clock, STOP_MAX_MS - STOP_RECEIVING_MAX_MS, Promise.allSettled(running), () => {});
  };
  const fail = (error: unknown) => {
    ending ??= end().then(() => settle.reject(error));
  };
  return {
    ended,
    signal: over.signal,
    fail,
    stop: async () => {
      ending ??= end().then(() => settle.resolve());
      await ending;
    },
    run: (work) => {
      const ran: Promise<void> = work()
        .catch(fail)
        .finally(() => running.delete(ran));
      running.add(ran);
    },
  };
}

/** The error of a loop that its source has ended. */
export function sourceClosed(what: string, cause?: unknown): MailroomError {
  return new MailroomError(
    'SOURCE_CLOSED',
    `${what} Messages that were not acknowledged are delivered again. Let the process end, and start it again.`,
    { cause },
  );
}
