import { epochMs } from '../base/epoch-time.ts';
import { parseJson, TOO_DEEP } from '../base/json.ts';
import { poison } from '../base/poison.ts';
import type { ExternalEvent, ExternalSubscription } from '../events/external-event.ts';
import { type ExternalIdValue, externalEventId, externalIdText } from '../store/external-id.ts';
import { formOf } from './message-form.ts';

/** The longest value of an id field, in characters: an S3 key has at most 1,024 bytes. */
const ID_VALUE_MAX = 2_048;

/** The members of an EventBridge event that an external event is read from. */
interface BridgedContent {
  readonly source: string;
  readonly 'detail-type': string;
  readonly detail: unknown;
  readonly id?: unknown;
  readonly time?: unknown;
}

/** The members of a CloudEvent that an external event is read from. */
interface CloudEvent {
  readonly source: string;
  readonly type: string;
  readonly data?: unknown;
  readonly id?: unknown;
  readonly time?: unknown;
}

type ExternalFields = Readonly<Record<string, unknown>>;

/** The data of an external event, with the values that EventBridge adds to it. */
interface ExternalContent {
  readonly data: unknown;
  readonly bridgeId?: unknown;
  readonly bridgeTime?: unknown;
}

/**
 * Reads a message as an external event of its consumer.
 *
 * @param body - the body, parsed
 * @param subscriptions - the consumer's external events
 * @param arrivedAt - the time at which SQS received the message, epoch milliseconds
 * @returns `undefined` if it belongs to none of them, and may be a Mailroom event
 * @throws `BAD_EXTERNAL_ID`, `BAD_EXTERNAL_TIME`, `UNREADABLE_MESSAGE`, naming the field, without values; a retry cannot succeed
 */
export function readExternal(
  body: unknown,
  subscriptions: readonly ExternalSubscription[],
  arrivedAt: number,
): ExternalEvent | undefined {
  const [first, ...others] = subscriptions;
  if (first === undefined) return undefined;
  const content = unwrapped(body);
  if (!isObject(content)) return undefined;
  const ownOf = (source: string, name: string) =>
    subscriptions.find((one) => one.source === source && one.type === name);
  if (isBridged(content)) {
    const { source, 'detail-type': type, detail, id, time } = content;
    const own = ownOf(source, type);
    return own && externalEventOf(own, { data: detail, bridgeId: id, bridgeTime: time }, arrivedAt);
  }
  if (isCloudEvent(content)) {
    const { source, type, data, id, time } = content;
    const own = ownOf(source, type);
    if (own === undefined) return undefined; // it has a name, and that is not the consumer's
    if ('data' in content) return externalEventOf(own, { data, bridgeId: id, bridgeTime: time }, arrivedAt);
  }
  if (others.length > 0) {
    if ('detail' in content) return undefined;
    throw poison(
      'UNREADABLE_MESSAGE',
      `The message does not name its event, and the consumer handles ${subscriptions.length} external events. ` +
        'Let its sender name it (docs/sources.md), or give each event its own consumer.',
    );
  }
  return externalEventOf(first, { data: content }, arrivedAt);
}

function externalEventOf(
  subscription: ExternalSubscription,
  content: ExternalContent,
  arrivedAt: number,
): ExternalEvent {
  const { source, type } = subscription;
  const id = idOf(subscription, content);
  const eventId = externalEventId(subscription, id);
  const occurredAt = timeOf(subscription, content) ?? arrivedAt;
  const externalId = externalIdText(id);
  return { eventId, externalId, source, type, occurredAt, correlationId: eventId, data: content.data };
}

/** The values of the id fields; without such fields, EventBridge's own id. */
function idOf(
  { type, external }: ExternalSubscription,
  { data, bridgeId }: ExternalContent,
): ExternalIdValue[] {
  if (external.id === undefined) {
    if (typeof bridgeId === 'string' && bridgeId !== '') return [bridgeId];
    throw poison(
      'BAD_EXTERNAL_ID',
      `The message has no id of EventBridge, CloudEvents or its broker, and the definition of ${type} has no id. Set id to the field that identifies the event.`,
    );
  }
  return external.id.map((path) => {
    const value = valueAt(data, path);
    const problem = idProblem(value);
    if (problem === undefined) return value as ExternalIdValue;
    const form = formOf(data);
    if (form !== undefined) throw poison('UNREADABLE_MESSAGE', `The message's body is ${form}`);
    throw poison(
      'BAD_EXTERNAL_ID',
      `The id field "${path}" of ${type} ${problem}. It must hold a string of 1 to ${ID_VALUE_MAX} characters or an integer. ` +
        'Correct id in the definition, or discard the message.',
    );
  });
}

/** Returns true if data has the id fields of this external event. */
export function hasIdOf({ external: { id } }: ExternalSubscription, data: unknown): boolean {
  return id?.every((path) => idProblem(valueAt(data, path)) === undefined) ?? false;
}

function idProblem(value: unknown): string | undefined {
  if (value === undefined) return 'is missing';
  if (value === '') return 'is empty';
  if (typeof value === 'string') {
    return value.length <= ID_VALUE_MAX ? undefined : `has ${value.length} characters`;
  }
  if (typeof value !== 'number') return `is of type ${value === null ? 'null' : typeof value}`;
  // Larger numbers are rounded when they are parsed: two events would have the same id.
  return Number.isSafeInteger(value) ? undefined : 'is not a safe integer';
}

function timeOf(
  { type, external: { time: path } }: ExternalSubscription,
  { data, bridgeTime }: ExternalContent,
): number | undefined {
  if (path === undefined) return epochMs(bridgeTime);
  const at = epochMs(valueAt(data, path));
  if (at !== undefined) return at;
  throw poison(
    'BAD_EXTERNAL_TIME',
    `The time field "${path}" of ${type} is missing or not a time. It must hold ISO 8601 text with a time zone, or epoch (milli)seconds. ` +
      'Correct time in the definition, or discard the message.',
  );
}

/** Follows a path through own members of objects. It does not enter lists: their other elements would be ignored silently. */
function valueAt(data: unknown, path: string): unknown {
  let value = data;
  for (const name of path.split('.')) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

/**
 * The content of an SNS notification, which is JSON as text, or of JSON that was encoded twice; any other body as it is, such as one of raw
 * delivery.
 */
export function unwrapped(body: unknown): unknown {
  if (typeof body === 'string') return encodedTwice(body);
  if (!isObject(body) || body.Type !== 'Notification' || typeof body.TopicArn !== 'string') return body;
  if (typeof body.Message !== 'string') return body;
  try {
    const content = parseJson(body.Message);
    return typeof content === 'string' ? encodedTwice(content) : content;
  } catch {
    throw poison(
      'UNREADABLE_MESSAGE',
      `The Message of the SNS notification is not JSON, or is ${TOO_DEEP}. Correct the sender, and discard the message.`,
    );
  }
}

function encodedTwice(text: string): unknown {
  try {
    const content = parseJson(text);
    return isObject(content) ? content : text;
  } catch {
    return text;
  }
}

function isBridged(content: ExternalFields): content is ExternalFields & BridgedContent {
  return (
    typeof content.source === 'string' && typeof content['detail-type'] === 'string' && 'detail' in content
  );
}

/** An event in the structured mode of CloudEvents 1.0, in JSON. */
function isCloudEvent(content: ExternalFields): content is ExternalFields & CloudEvent {
  const { specversion, source, type } = content;
  return [specversion, source, type].every((one) => typeof one === 'string');
}

function isObject(value: unknown): value is ExternalFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
