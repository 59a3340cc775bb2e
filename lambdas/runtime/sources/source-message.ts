import { epochMs } from '../base/epoch-time.ts';
import { MailroomError } from '../base/errors.ts';
import { parseJson } from '../base/json.ts';
import type { SourceDelivery } from '../consume/delivery.ts';
import { hasIdOf } from '../consume/external-message.ts';
import { type HandledDefinition, isExternal } from '../events/external-event.ts';
import { isEventId } from '../store/event-id.ts';
import { type BodyText, bodyText, DECODE } from './body-text.ts';
import { type ChangeRecord, changeRecordIn } from './change-record.ts';

/** One delivery of a message by a source, such as a topic, a stream or a queue. */
export interface SourceMessage {
  /**
   * The same in each delivery of a message, and another one if it is published again, e.g. topic, partition and offset. A rejected message
   * is rejected again under its id, and runs under another one.
   */
  readonly id: string;
  /**
   * The envelope of a Mailroom event, an EventBridge event whose `detail` is one, or an external event, as JSON; `null` for a tombstone, which is
   * skipped. Anything else is rejected, unless the inbox has a `decode`.
   */
  readonly body: string | Uint8Array | null;
  /**
   * The headers. A Mailroom event needs none; `source`, `type`, `id`, `time`, the same attributes of CloudEvents, and `Nats-Msg-Id` are
   * read. @default none
   */
  readonly headers?: Readonly<Record<string, unknown>> | undefined;
  /** The id that its publisher gave to it, such as AMQP's `messageId`, for an external event without an `id`. @default that of the headers */
  readonly publishedId?: string | null | undefined;
  /** The type that its publisher gave to it, such as AMQP's `type`. @default that of the headers */
  readonly publishedType?: string | null | undefined;
  /** The number of deliveries, including this one. @default unknown: the message may be a repeat, so its attempts are counted */
  readonly receives?: number | undefined;
  /**
   * The time at which the source received it, or at which its sender sent it: seconds, milliseconds, microseconds or nanoseconds since 1970,
   * recognized by their size. A time that is negative, 0 or more than a day ahead counts as unknown. @default unknown
   */
  readonly sentAt?: number | undefined;
}

/**
 * The message as every consumer reads it: the body becomes an EventBridge event.
 *
 * @param definitions - the events of the consumer's handlers
 */
export function deliveryOf(
  message: SourceMessage,
  definitions: readonly HandledDefinition[],
): SourceDelivery {
  const { id, receives, sentAt, body } = message;
  const read = bodyText(body ?? '');
  const event = 'problem' in read ? read : eventText(read.text, message, definitions);
  const { text, problem } = event as { readonly text: string; readonly problem?: Error };
  return {
    messageId: id,
    body: text,
    receives: wholeOf(receives),
    sentAt: wholeOf(epochMs(sentAt)),
    problem,
    remedy: DECODE,
  };
}

/** The event in a text, which may be in a form of change data capture. */
function eventText(
  text: string,
  message: SourceMessage,
  definitions: readonly HandledDefinition[],
): BodyText {
  const change = changeRecordIn(text);
  if (change === undefined) return { text: namedText(text, message, definitions) };
  const external = change.isOwn ? undefined : externalText(text, change, message, definitions);
  if (external !== undefined) return { text: namedText(external, message, definitions) };
  if ('problem' in change) return { text, problem: change.problem };
  if ('skip' in change) {
    const said = `The message is ${change.skip}, from change data capture, and has no event.`;
    return { text, problem: new MailroomError('NO_EVENT', said) };
  }
  const named = { ...message, headers: { ...message.headers, ...change.headers } };
  return { text: namedText(change.text, named, definitions) };
}

/**
 * The text of an external event in a form of change data capture, with or without Connect's schema. Its id is read by its definition, or from a
 * header, or from the transport. `undefined` for any other message.
 */
function externalText(
  text: string,
  change: ChangeRecord,
  message: SourceMessage,
  definitions: readonly HandledDefinition[],
): string | undefined {
  const { payload = text } = change;
  const hasId = (content: string) =>
    definitions.filter(isExternal).some((one) => hasIdOf(one, objectIn(content)));
  const identified = [text, payload].find(hasId);
  if (identified !== undefined) return identified;
  // Debezium's own records have no such name. Text in a schema is taken out.
  if (isNamed(message, definitions)) return 'text' in change && payload === text ? undefined : text;
  if ('text' in change || transportId(message) === undefined) return undefined;
  return unnamedOwner(objectIn(payload) ?? {}, definitions) && payload;
}

/** Returns true for a message with a header that names it, or with the type of an external event of the consumer. */
function isNamed({ headers = {}, publishedType }: SourceMessage, definitions: readonly HandledDefinition[]) {
  if (['id', 'type'].some((name) => headerOf(headers, name) !== undefined)) return true;
  return definitions.filter(isExternal).some((one) => one.type === publishedType);
}

/** The id that a broker or a publisher gave to a message. */
function transportId({ headers = {}, publishedId }: SourceMessage): string | undefined {
  return headerText(headers['Nats-Msg-Id']) ?? (publishedId || undefined);
}

function wholeOf(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.floor(value);
}

function namedText(text: string, message: SourceMessage, definitions: readonly HandledDefinition[]): string {
  const { headers = {}, publishedType } = message;
  const content = objectIn(text);
  if (content === undefined || 'detail' in content) return text;
  const named = (name: string) => headerOf(headers, name);
  const source = named('source');
  if (isEventId(content.eventId) && typeof content.type === 'string' && 'data' in content) {
    // Bare headers count beside the event's id, as bridges and Debezium's event router write them: others are those of another system.
    const isBridges = [headers.eventId, headers.id].some((id) => headerText(id) === content.eventId);
    const written = (name: string) => (isBridges ? named(name) : headerOf(headers, name, CLOUD_PREFIXES));
    const type = written('type') ?? content.type;
    // A stream without headers does not name the service: then it is that of the only event of this type.
    const owners = definitions.filter((one) => one.type === content.type).map((one) => one.source);
    const known = owners.length === 1 ? owners[0] : owners.find((owner) => owner === source);
    return bridged({ source: written('source') ?? known ?? '', 'detail-type': type }, text);
  }
  const type = named('type') ?? (publishedType || undefined);
  const id = named('id') ?? transportId(message);
  const owners = definitions.filter((one) => one.type === type && (source ?? one.source) === one.source);
  const cloudType = headerOf(headers, 'type', CLOUD_PREFIXES);
  // A CloudEvent of another type is not the consumer's only external event, and keeps its own name.
  if (cloudType !== undefined && owners.length === 0)
    return bridged({ source: source ?? '', 'detail-type': cloudType, id, time: named('time') }, text);
  const owner = owners.length === 1 ? owners[0] : id && unnamedOwner(content, definitions);
  if (!owner) return text;
  return bridged({ source: owner.source, 'detail-type': owner.type, id, time: named('time') }, text);
}

/** The external event that a message without a name is, and whose id is that of its transport; none if the body has its own name. */
function unnamedOwner(
  content: Readonly<Record<string, unknown>>,
  definitions: readonly HandledDefinition[],
): HandledDefinition | undefined {
  if (content.specversion !== undefined || content.Type === 'Notification') return undefined;
  const [only, ...others] = definitions.filter(isExternal);
  return others.length === 0 && only?.external.id === undefined ? only : undefined;
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

/** The prefixes of CloudEvents attributes: those of Kafka, NATS and HTTP, AMQP (CloudEvents 1.0, protocol bindings). */
const CLOUD_PREFIXES = ['ce_', 'ce-', 'cloudEvents:', 'cloudEvents_'];

/** The value of a header, or of the CloudEvents attribute of this name. */
function headerOf(
  headers: Readonly<Record<string, unknown>>,
  name: string,
  prefixes: readonly string[] = ['', ...CLOUD_PREFIXES],
): string | undefined {
  for (const prefix of prefixes) {
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
