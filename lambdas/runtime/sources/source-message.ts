import type { SQSRecord } from 'aws-lambda';
import { epochMs } from '../base/epoch-time.ts';
import { parseJson } from '../base/json.ts';
import type { HandledDefinition } from '../events/external-event.ts';
import { isEventId } from '../store/event-id.ts';

/** One delivery of a message by a source, such as a topic, a stream or a queue. */
export interface SourceMessage {
  /**
   * The same in each delivery of a message, and another one if it is published again, e.g. topic, partition and offset. A rejected message
   * is rejected again under its id, and runs under another one.
   */
  readonly id: string;
  /**
   * The envelope of a Mailroom event, an EventBridge event whose `detail` is one, or an external event, as JSON. Anything else is
   * rejected.
   */
  readonly body: string | Uint8Array;
  /** The headers. A Mailroom event needs none; `source`, `type` and CloudEvents attributes are read. @default none */
  readonly headers?: Readonly<Record<string, unknown>> | undefined;
  /** The number of deliveries, including this one. @default unknown: the message may be a repeat, so its attempts are counted */
  readonly receives?: number | undefined;
  /**
   * The time at which the source received it, or at which its sender sent it: seconds, milliseconds, microseconds or nanoseconds since 1970,
   * recognized by their size. A time that is negative, 0 or more than a day ahead counts as unknown. @default unknown
   */
  readonly sentAt?: number | undefined;
}

/**
 * The message as the record of an SQS batch, which the consumer reads: the body becomes an EventBridge event.
 *
 * @param definitions - the events of the consumer's handlers
 */
export function recordOf(message: SourceMessage, definitions: readonly HandledDefinition[]): SQSRecord {
  const { id, receives, sentAt } = message;
  const attributes = { ApproximateReceiveCount: textOf(receives), SentTimestamp: textOf(epochMs(sentAt)) };
  return { messageId: id, receiptHandle: '', body: bodyOf(message, definitions), attributes } as SQSRecord;
}

function textOf(value: number | undefined): string {
  return value === undefined ? '' : String(Math.floor(value));
}

function bodyOf({ body, headers = {} }: SourceMessage, definitions: readonly HandledDefinition[]): string {
  const text = typeof body === 'string' ? body : Buffer.from(body).toString('utf8');
  const content = objectIn(text);
  if (content === undefined || 'detail' in content) return text;
  const named = (name: string) => headerOf(headers, name);
  const source = named('source');
  if (isEventId(content.eventId) && typeof content.type === 'string' && 'data' in content) {
    const type = named('type') ?? content.type;
    // A stream without headers does not name the service: then it is that of the only event of this type.
    const owners = definitions.filter((one) => one.type === content.type).map((one) => one.source);
    return bridged({ source: source ?? (owners.length === 1 ? owners[0] : ''), 'detail-type': type }, text);
  }
  const type = named('type');
  if (!definitions.some((one) => one.source === source && one.type === type)) return text;
  return bridged({ source, 'detail-type': type, id: named('id'), time: named('time') }, text);
}

/** The text of the body stays as it was published: parsing and writing it again would change numbers. */
function bridged(members: Readonly<Record<string, string | undefined>>, detail: string): string {
  return `${JSON.stringify(members).slice(0, -1)},"detail":${detail}}`;
}

function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = parseJson(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined;
  } catch {
    return undefined; // the consumer rejects it, with the reason
  }
}

/** The prefixes of CloudEvents attributes: none, then those of Kafka, NATS and HTTP, AMQP (CloudEvents 1.0, protocol bindings). */
const PREFIXES = ['', 'ce_', 'ce-', 'cloudEvents:', 'cloudEvents_'];

/** The value of a header, or of the CloudEvents attribute of this name. */
function headerOf(headers: Readonly<Record<string, unknown>>, name: string): string | undefined {
  for (const prefix of PREFIXES) {
    const found = Object.hasOwn(headers, prefix + name) ? headerText(headers[prefix + name]) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * A header is text, bytes, a number, or a list of bytes as Lambda writes it: `[…]` for Kafka, with signed values, `{ bytes: […] }` for Amazon MQ. Of
 * a repeated header, which Kafka's clients deliver as a list, the last one counts, as in the CloudEvents SDKs and in Spring. An empty one is absent.
 */
function headerText(value: unknown): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value;
  if (typeof value === 'number') return String(value);
  const bytes = (value as { readonly bytes?: unknown } | undefined | null)?.bytes ?? value;
  if (bytes instanceof Uint8Array) return headerText(Buffer.from(bytes).toString('utf8'));
  if (!Array.isArray(bytes)) return undefined;
  if (bytes.every((one) => typeof one === 'number')) return headerText(Buffer.from(bytes).toString('utf8'));
  return headerText(bytes.at(-1));
}
