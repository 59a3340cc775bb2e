import { withDeadline } from '../base/clock.ts';
import { MailroomError } from '../base/errors.ts';
import { isPoison, poison } from '../base/poison.ts';
import type { ConsumerContext } from '../consume/consumer-context.ts';
import { again, type MessageOutcome, noTimeLeft } from '../consume/message-outcome.ts';
import { attemptsSpent } from '../consume/run-ending.ts';
import type { SourceMessage } from './source-message.ts';

/**
 * Turns the body of a message into one that can be read: JSON, as text or bytes. Returns `undefined` for a message to skip. It must return the same for
 * the same message, because an external event may be identified by it.
 */
export type DecodeBody = (
  message: SourceMessage,
) => string | Uint8Array | undefined | Promise<string | Uint8Array | undefined>;

/** A body that was decoded, the outcome of a message that needs no handler now, or the reason to reject it. */
export type Decoded =
  | { readonly body: string | Uint8Array }
  | { readonly outcome: MessageOutcome }
  | { readonly problem: unknown };

/** The most messages whose failures are remembered: those that are delivered by turns are far fewer. */
const REMEMBERED_MAX = 10_000;

/** The time after which another invocation receives a message that this one could not decode in time, milliseconds. */
const NO_TIME_AGAIN_MS = 1_000;

/**
 * Creates the reader of bodies. A tombstone, whose body is `null`, is skipped unless there is a `decode`. An error of `decode` is retried by the
 * schedule of the consumer, because a schema registry may be away. Its attempts are counted in this process: the message has no row yet, because its
 * event is not known. After the last one, it is rejected, so that it does not hold back its partition forever.
 */
export function createBodyDecoder(
  { clock, config, delays, telemetry }: ConsumerContext,
  decode: DecodeBody | undefined,
) {
  const attempts = new Map<string, number>();
  let saidTombstone = false;

  const skipped = (): Decoded => {
    telemetry.count('MessagesSkipped');
    return { outcome: { kind: 'done' } };
  };
  const tombstone = (): Decoded => {
    if (!saidTombstone)
      telemetry.log.info('Tombstones are skipped: messages without a body. This is logged once');
    saidTombstone = true;
    return skipped();
  };
  const failed = (id: string, error: unknown): Decoded => {
    const attempt = (attempts.get(id) ?? 0) + 1;
    attempts.delete(id);
    if (isPoison(error)) return { problem: error };
    if (attempt >= config.maxAttempts) return { problem: attemptsSpent(attempt, error) };
    attempts.set(id, attempt);
    const [oldest] = attempts.keys();
    if (attempts.size > REMEMBERED_MAX && oldest !== undefined) attempts.delete(oldest);
    telemetry.count('MessagesFailed');
    telemetry.log.error('A message could not be decoded and will be retried', {
      error: error as Error,
      messageId: id,
    });
    return { outcome: again(delays.retryMs(attempt, error), error) };
  };

  /** @param withinMs - the time of the call */
  return async (message: SourceMessage, withinMs: number): Promise<Decoded> => {
    const { id } = message;
    if (decode === undefined) return message.body === null ? tombstone() : { body: message.body };
    if (withinMs <= 0) return { outcome: again(NO_TIME_AGAIN_MS, noTimeLeft()) };
    try {
      const decoding = Promise.resolve(decode(message));
      const body = await withDeadline(clock, withinMs, decoding, () => {
        throw new MailroomError('OUT_OF_TIME', `decode did not end within ${withinMs} ms.`);
      });
      if (body === undefined) {
        attempts.delete(id);
        return skipped();
      }
      if (typeof body !== 'string' && !(body instanceof Uint8Array)) throw notABody(body);
      attempts.delete(id);
      return { body };
    } catch (error) {
      return failed(id, error);
    }
  };
}

function notABody(value: unknown): Error {
  return poison(
    'UNREADABLE_MESSAGE',
    `decode returned a value of type ${value === null ? 'null' : typeof value}. Return JSON as text or bytes, e.g. JSON.stringify(value), or undefined to skip the message.`,
  );
}
