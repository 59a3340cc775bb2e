import { isObject } from '../base/json.ts';
import { isEventId } from '../store/event-id.ts';

/** A form in which messages arrive that a consumer does not read: its name, and what to do. */
interface Form {
  readonly is: (body: Readonly<Record<string, unknown>>) => boolean;
  readonly name: string;
  readonly remedy: string;
}

const FORMS: readonly Form[] = [
  {
    is: ({ Records: records }) => Array.isArray(records) && isObject(records[0]) && isObject(records[0].s3),
    name: 'an S3 notification, which holds a list of records with encoded keys',
    remedy: 'Let the bucket send its events to EventBridge, and remove its notification to this queue.',
  },
  {
    is: ({ Records: records }) => Array.isArray(records),
    name: 'a list of records',
    remedy: 'Let its sender send one message for each record.',
  },
  {
    is: ({ Type }) => Type === 'SubscriptionConfirmation' || Type === 'UnsubscribeConfirmation',
    name: 'a question of SNS about a subscription',
    remedy: 'Answer it, if you know the topic, and discard the message.',
  },
  {
    is: ({ Type, TopicArn }) => Type === 'Notification' && typeof TopicArn === 'string',
    name: 'an SNS notification',
    remedy: 'Set raw message delivery of its subscription.',
  },
  {
    is: (body) => 'schema' in body && 'payload' in body,
    name: 'a value of Kafka Connect with its schema',
    remedy:
      'Set value.converter of the connector to org.apache.kafka.connect.storage.StringConverter, as `npx cdk-mailroom cdc config` does.',
  },
  {
    is: (body) => 'op' in body && ('before' in body || 'after' in body),
    name: 'a change of a row, from Debezium',
    remedy: "Use Debezium's outbox event router, as `npx cdk-mailroom cdc config` does.",
  },
  {
    is: ({ specversion }) => typeof specversion === 'string',
    name: 'a CloudEvent whose source and type are not those of an event of this consumer, or that has no data',
    remedy: 'Correct source and type in the definition, or discard the message.',
  },
  {
    is: (body) => isEventId(body.eventId) && 'data' in body,
    name: 'the envelope of a Mailroom event without the EventBridge event around it',
    remedy:
      'If a rule of Mailroom sent it, that rule changes events, and `npx cdk-mailroom status` names it. Otherwise, consume it with createInboxProcessor (docs/sources.md).',
  },
];

/** Describes a parsed body that is not an event: its form and the remedy, as the end of a sentence and a sentence. */
export function formOf(body: unknown): string | undefined {
  if (Array.isArray(body)) return 'a list. Let its sender send one message for each element.';
  if (!isObject(body)) return undefined;
  const form = FORMS.find(({ is }) => is(body));
  return form && `${form.name}. ${form.remedy}`;
}

/** The forms of text that is not JSON. */
const TEXT_FORMS: readonly (readonly [form: RegExp, name: string])[] = [
  [/^\s*$/, 'empty'],
  [/^\s*</, 'XML or HTML'],
  // Base64 of `{"`, of `{` with a line break or a space, and of gzip.
  [/^(eyJ|ewo|ew0K|eyA)[\w+/=.-]*$/, 'JSON in Base64, or a token'],
  [/^H4sI/, 'compressed with gzip, in Base64'],
  [/^[^\n]*\}\s*\n\s*\{/, 'several JSON values, one in each line'],
  [/^\s*\{.*\}\s*\{/s, 'several JSON values'],
  [/^[\w.%+-]+=[^\s&]*(&[\w.%+-]+=[^\s&]*)*$/, 'a form, URL-encoded'],
  // biome-ignore lint/suspicious/noControlCharactersInRegex: binary data has them
  [/^[\s\S]{0,100}[\u0000-\u0008\u000e-\u001f]/, 'binary, such as Avro or Protobuf'],
];

/** Names the form of text that is not JSON; an error quotes none of it. */
export function textFormOf(text: string): string | undefined {
  const start = text.slice(0, TEXT_START);
  return TEXT_FORMS.find(([form]) => form.test(start))?.[1];
}

/** A form shows in the first characters. */
const TEXT_START = 2_000;

/** Returns true for the message that S3 sends when notifications are set up: it is healthy, and carries no event. */
export function isS3TestEvent(body: unknown): boolean {
  return isObject(body) && body.Service === 'Amazon S3' && body.Event === 's3:TestEvent';
}
