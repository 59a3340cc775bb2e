import { errorCode, errorMessage, MailroomError } from '../base/errors.ts';
import type { ReceivedEvent } from '../events/event.ts';
import { type BridgedEvent, type BridgeResult, refused } from './bridge-target.ts';

/** Returns the reason why a protocol does not accept a text, e.g. `has white space`. */
export type Grammar = (text: string) => string | undefined;

/** The error of a message that its protocol does not accept. */
class NotSendable extends Error {
  readonly code: 'BRIDGE_REJECTED' | 'TOO_LARGE';

  constructor(message: string, code: NotSendable['code'] = 'BRIDGE_REJECTED') {
    super(message);
    this.code = code;
  }
}

/**
 * Builds the message of each entry, and sends those that can be built. Building sends nothing, so if it throws, the event is the reason: it alone
 * is rejected. Brokers are less careful: NATS ends the connection, and AWS refuses the whole batch.
 *
 * @param build - makes an entry's message from its event, and checks what it makes
 * @param send - sends the messages, and answers each
 */
export async function sendBuilt<M>(
  entries: readonly BridgedEvent[],
  build: (entry: BridgedEvent) => M,
  send: (messages: readonly M[]) => Promise<readonly (BridgeResult | undefined)[]>,
): Promise<readonly BridgeResult[]> {
  const messages: M[] = [];
  const rejected = entries.map((entry) => {
    try {
      messages.push(build(entry));
      return undefined;
    } catch (error) {
      const isTooLarge = error instanceof NotSendable && error.code === 'TOO_LARGE';
      return refused(isTooLarge ? 'too-large' : 'invalid', errorCode(error), errorMessage(error));
    }
  });
  const answers = messages.length === 0 ? [] : await send(messages);
  let sent = 0;
  return rejected.map(
    (rejection) =>
      rejection ??
      answers[sent++] ??
      refused('unavailable', 'NO_ANSWER', 'its answer does not name the event'),
  );
}

/**
 * Makes the function that returns an event's address.
 *
 * @param name - that of the option, e.g. `subject`
 * @param given - an address, or the app's function of the event
 * @throws `BAD_ARGUMENT` if a given address is not one: no event could be sent
 */
export function addressOf(
  target: string,
  name: string,
  given: string | ((event: ReceivedEvent) => string),
  grammar: Grammar,
): (event: ReceivedEvent) => string {
  if (typeof given === 'function') return (event) => accepted(name, given(event), grammar);
  const problem = grammar(given);
  if (problem === undefined) return () => given;
  throw new MailroomError('BAD_ARGUMENT', `${target}: ${name} ${JSON.stringify(given)} ${problem}.`);
}

/** Returns a text that its protocol accepts. @throws the error of a message that is not sent */
export function accepted(name: string, text: unknown, grammar: Grammar): string {
  if (typeof text !== 'string') throw new NotSendable(`its ${name} is not a string, but ${typeof text}`);
  const problem = grammar(text);
  if (problem === undefined) return text;
  throw new NotSendable(`its ${name} ${JSON.stringify(text.slice(0, 80))} ${problem}`);
}

/** Checks the size of a message. @throws the error of a message that is not sent */
export function checkSize(bytes: number, maxBytes: number): void {
  if (bytes > maxBytes) throw new NotSendable(`it has ${bytes} bytes; ${maxBytes} are allowed`, 'TOO_LARGE');
}

/**
 * The longest subject, bytes: a line of the protocol also has the subject of the reply and two sizes, and has at most 4,096 bytes
 * (`max_control_line`). A server ends the connection that sends a longer one.
 */
const SUBJECT_MAX_BYTES = 3_840;

/** A subject of NATS to publish to. */
export const natsSubject: Grammar = (text) => {
  if (/[\s\p{Cc}\p{Cs}]/u.test(text)) return 'has white space or a control character';
  if (/[*>]/.test(text)) return 'has a wildcard, * or >';
  if (text.split('.').includes('')) return 'has an empty token';
  if (/^(\$JS|\$SYS|_INBOX)(\.|$)/.test(text)) return 'belongs to NATS itself';
  return longerThan(SUBJECT_MAX_BYTES, text);
};

/** The name of a topic of Kafka. */
export const kafkaTopic: Grammar = (text) =>
  /^(?!\.{1,2}$)[\w.-]{1,249}$/.test(text)
    ? undefined
    : 'must have 1 to 249 letters, digits, dots, dashes and underscores, and not be "." or ".."';

/** A short string of AMQP 0-9-1: a routing key, the name of an exchange, the id of a message. */
export const amqpShortString: Grammar = (text) =>
  /\p{Cs}/u.test(text) ? 'has half of a surrogate pair' : longerThan(255, text);

/** The content of a message of SQS and SNS (API reference of SQS, SendMessage): the characters of XML 1.0. */
export const awsText: Grammar = (text) =>
  /[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u.test(text)
    ? 'has a character that SQS and SNS do not accept'
    : undefined;

/** The value of a message attribute of SQS and SNS. */
export const awsAttribute: Grammar = (text) => (text === '' ? 'is empty' : awsText(text));

function longerThan(maxBytes: number, text: string): string | undefined {
  const bytes = Buffer.byteLength(text);
  return bytes <= maxBytes ? undefined : `has ${bytes} bytes; ${maxBytes} are allowed`;
}
