/** The column by which a topic is chosen, or one topic for all events. */
export const TOPICS = {
  'aggregate-type': 'aggregate_type',
  type: 'type',
  source: 'source',
  one: undefined,
} as const;

/** The options of a connector. */
export interface ConnectorOptions {
  /** A URL, or the name of the database's kind. */
  readonly database: string;
  /** Names the connector, its slot and its publication, and begins its topics. */
  readonly name: string;
  readonly topics: keyof typeof TOPICS;
  readonly retentionDays: number;
  /** The log that a slot of PostgreSQL may hold back, as it writes sizes. */
  readonly slotCap: string;
}

/** The interval of heartbeats, milliseconds. */
const HEARTBEAT_MS = 10_000;

const TEXT_CONVERTER = 'org.apache.kafka.connect.storage.StringConverter';

/** A value that the Connect worker reads from its environment: a configuration is stored in a topic, and shown by Connect's API. */
export const env = (name: string) => `\${env:${name}}`;

/**
 * The settings of every connector.
 *
 * - Text converters: an envelope arrives byte for byte, and the key is the aggregate's id, so one partition has all events of an aggregate.
 * - `when_needed` takes a snapshot when the connector starts without a position, or finds that it was lost. It reads the events that the retention has kept,
 *   in the order of their ids; those that were sent before are duplicates, which an inbox absorbs.
 * - A name that no topic can have goes to `<name>.other`: otherwise Kafka refuses the topic, and the connector stops.
 */
export function commonConfig({ name, topics }: ConnectorOptions): Readonly<Record<string, string>> {
  const column = TOPICS[topics];
  return {
    'tasks.max': '1',
    'skipped.operations': 'u,d,t',
    'tombstones.on.delete': 'false',
    'topic.prefix': name,
    'topic.creation.default.partitions': '-1',
    'topic.creation.default.replication.factor': '-1',
    'snapshot.mode': 'when_needed',
    'heartbeat.interval.ms': String(HEARTBEAT_MS),
    'key.converter': TEXT_CONVERTER,
    'value.converter': TEXT_CONVERTER,
    'header.converter': TEXT_CONVERTER,
    transforms: 'outbox,other',
    'transforms.outbox.type': 'io.debezium.transforms.outbox.EventRouter',
    'transforms.outbox.table.field.event.id': 'event_id',
    'transforms.outbox.table.field.event.key': 'aggregate_id',
    'transforms.outbox.table.field.event.payload': 'envelope',
    'transforms.outbox.table.fields.additional.placement':
      'event_id:header:eventId,source:header:source,type:header:type',
    'transforms.outbox.route.by.field': column ?? 'source',
    'transforms.outbox.route.topic.replacement':
      column === undefined ? `${name}.events` : `${name}.\${routedByValue}`,
    'transforms.other.type': 'org.apache.kafka.connect.transforms.RegexRouter',
    'transforms.other.regex': '(?s)(.*[^A-Za-z0-9._-].*|.{250,})',
    'transforms.other.replacement': `${name}.other`,
  };
}
