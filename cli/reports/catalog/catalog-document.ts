import { createHash } from 'node:crypto';
import type { StandardJSONSchemaV1 } from '@standard-schema/spec';
import { errorMessage, MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { isObject, jsonObject } from '../../../lambdas/runtime/base/json.ts';
import { type AnyEventDefinition, HOPS_MAX } from '../../../lambdas/runtime/events/event.ts';
import type { Catalog } from './load-catalog.ts';
import { type SchemaFields, schemaFields } from './schema-fields.ts';
import { createSchemaSource, type JsonObject } from './schema-source.ts';

/** An event of a catalog, as its AsyncAPI document has it. */
interface CatalogEvent {
  readonly source: string;
  readonly type: string;
  readonly version: number;
  readonly aggregateType: string;
  /** The definition has an `upcast`. */
  readonly upcast: boolean;
  readonly sequence: boolean;
}

/** The form of the document, in `x-mailroom`: a later form is refused. */
const FORM = 1;

/** The dialect of AsyncAPI's own schemas. */
const DIALECT = 'draft-07';

const SCHEMAS = '#/components/schemas/';
const DEFINITIONS = '#/definitions/';

/**
 * Describes a catalog as AsyncAPI 3.0: a channel for each event, whose payload is the `detail` of EventBridge's event.
 *
 * @throws `SCHEMA_NOT_EXPRESSIBLE` for a definition whose payload JSON Schema cannot describe
 */
export function asyncApiOf({ title, version, definitions }: Catalog): JsonObject {
  const keyed = definitions.map((definition) => [keyOf(definition), definition] as const);
  const each = (value: (key: string, definition: AnyEventDefinition) => unknown): JsonObject =>
    Object.fromEntries(keyed.map(([key, definition]) => [key, value(key, definition)]));
  return {
    asyncapi: '3.0.0',
    info: { title, version },
    defaultContentType: 'application/json',
    channels: each((key, { type }) => ({
      address: type,
      messages: { [key]: { $ref: `#/components/messages/${key}` } },
    })),
    operations: each((key) => ({
      action: 'send',
      channel: { $ref: `#/channels/${key}` },
      messages: [{ $ref: `#/channels/${key}/messages/${key}` }],
    })),
    components: { messages: each(messageOf), schemas: schemasOf(definitions, SCHEMAS) },
    'x-mailroom': { catalog: FORM },
  };
}

/**
 * Describes a catalog as one JSON Schema (draft-07), which the `detail` of each of its events matches.
 *
 * @throws `SCHEMA_NOT_EXPRESSIBLE` for a definition whose payload JSON Schema cannot describe
 */
export function jsonSchemaOf({ title, definitions }: Catalog): JsonObject {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title,
    oneOf: definitions.map((definition) => detailOf(definition, DEFINITIONS)),
    definitions: schemasOf(definitions, DEFINITIONS),
  };
}

/** The events of an exported catalog by their keys, each with the fields of its payload. */
export type ReadCatalog = ReadonlyMap<string, CatalogEvent & { readonly fields: SchemaFields }>;

/**
 * Reads an AsyncAPI document that {@link asyncApiOf} wrote.
 *
 * @param file - for the error
 * @throws `NOT_A_CATALOG`
 */
export function readCatalog(file: string, text: string): ReadCatalog {
  const document = jsonObject(text);
  const not = (problem: string) =>
    new MailroomError(
      'NOT_A_CATALOG',
      `The file ${file} is not an AsyncAPI document of Mailroom: ${problem}. Write it with \`npx cdk-mailroom events export <module>\`.`,
    );
  if (document === undefined) throw not('it is not a JSON object');
  const form = Object(document['x-mailroom']).catalog;
  if (form !== FORM)
    throw not(`x-mailroom.catalog is ${JSON.stringify(form) ?? 'missing'}, and this version reads ${FORM}`);
  const { messages, schemas } = Object(document.components);
  const source = createSchemaSource(document, text.length, not);
  const events = Object.entries(Object(messages)).map(([key, message]) => {
    const event: unknown = Object(message)['x-mailroom'];
    const payload: unknown = Object(schemas)[key];
    if (!isEvent(event)) throw not(`components.messages.${key} has no valid x-mailroom`);
    if (!isObject(payload)) throw not(`components.schemas.${key} is missing`);
    return [key, { ...event, fields: schemaFields(source, payload, 'data') }] as const;
  });
  if (events.length === 0) throw not('components.messages is empty');
  return new Map(events);
}

function isEvent(value: unknown): value is CatalogEvent {
  const { source, type, version, aggregateType, upcast, sequence } = Object(value);
  const texts = [source, type, aggregateType].every((text) => typeof text === 'string');
  return (
    texts && [upcast, sequence].every((flag) => typeof flag === 'boolean') && Number.isSafeInteger(version)
  );
}

/** The key of an event in `components`, whose names have few characters: another name gets a hash. */
function keyOf({ source, type }: AnyEventDefinition): string {
  const name = `${source}.${type}`;
  const key = name.replace(/[^\w.-]/g, '_');
  if (key === name && !source.includes('.')) return key;
  return `${key}-${createHash('sha256').update(`${source}\n${type}`).digest('hex').slice(0, 8)}`;
}

function messageOf(_key: string, definition: AnyEventDefinition): JsonObject {
  const { source, type, version, aggregateType, upcast, sequence } = definition;
  const event: CatalogEvent = {
    source,
    type,
    version,
    aggregateType,
    upcast: upcast !== undefined,
    sequence,
  };
  const headers = { source: { const: source }, 'detail-type': { const: type } };
  return {
    name: type,
    title: `${type} v${version}`,
    contentType: 'application/json',
    headers: { type: 'object', properties: headers, required: Object.keys(headers) },
    payload: detailOf(definition, SCHEMAS),
    'x-mailroom': event,
  };
}

/** The schema of the envelope with an event's payload. @param base - where the schemas are in the document */
function detailOf(definition: AnyEventDefinition, base: string): JsonObject {
  const { type, version, aggregateType, sequence } = definition;
  const own = {
    type: { const: type },
    version: { const: version },
    aggregateType: { const: aggregateType },
    ...(sequence && { sequence: { type: 'integer', minimum: 1 } }),
    data: { $ref: base + keyOf(definition) },
  };
  return {
    allOf: [{ $ref: `${base}Envelope` }, { type: 'object', properties: own, required: Object.keys(own) }],
  };
}

const TEXT = { type: 'string', minLength: 1 };

/** The envelope: what every consumer requires of it, and what a producer may add. */
const ENVELOPE: JsonObject = {
  type: 'object',
  properties: {
    eventId: { type: 'string', format: 'uuid', description: 'A UUIDv7. Deduplicate by it.' },
    type: TEXT,
    version: { type: 'integer', minimum: 1 },
    aggregateType: TEXT,
    aggregateId: TEXT,
    occurredAt: { type: 'integer', description: 'Epoch milliseconds.' },
    correlationId: TEXT,
    causationId: TEXT,
    hops: { type: 'integer', minimum: 1, maximum: HOPS_MAX },
    traceId: { type: 'string' },
    traceparent: { type: 'string' },
    tracestate: { type: 'string' },
    sequence: { type: 'number' },
    data: {},
  },
  required: [
    'eventId',
    'type',
    'version',
    'aggregateType',
    'aggregateId',
    'occurredAt',
    'correlationId',
    'data',
  ],
};

/** No key of an event is `Envelope`: each has a source and a full stop. */
function schemasOf(definitions: readonly AnyEventDefinition[], base: string): JsonObject {
  const payloads = definitions.map((definition) => {
    const key = keyOf(definition);
    return [key, moved(payloadOf(definition), `${base}${key}`)];
  });
  return { Envelope: ENVELOPE, ...Object.fromEntries(payloads) };
}

/** The remedy for a schema that offers no JSON Schema. */
const REMEDIES: Readonly<Record<string, string>> = {
  zod: 'Upgrade to zod 4.2 or later',
  valibot: 'Wrap the schema in `toStandardJsonSchema` of @valibot/to-json-schema',
};

/** arktype describes these as any value unless it is told otherwise. */
const NOT_JSON = ['date', 'domain', 'morph', 'proto', 'symbolKey', 'unit'];

/** Events are stored as the schema's input and validated at each read, so the input is what consumers receive. */
function payloadOf({ type, schema }: AnyEventDefinition): JsonObject {
  const { vendor, jsonSchema } = schema['~standard'] as Partial<StandardJSONSchemaV1.Props>;
  const not = (problem: string) =>
    new MailroomError('SCHEMA_NOT_EXPRESSIBLE', `Event definition "${type}": its schema ${problem}.`);
  if (jsonSchema === undefined) {
    const remedy =
      REMEDIES[vendor ?? ''] ?? 'Upgrade the validator, or use one that offers it, such as zod 4.2';
    throw not(`(${vendor}) offers no JSON Schema by the interface "Standard JSON Schema". ${remedy}`);
  }
  const refuse = (code: string) => () => {
    throw new Error(`${code} cannot be represented`);
  };
  const fallback = Object.fromEntries(NOT_JSON.map((code) => [code, refuse(code)]));
  try {
    return jsonSchema.input({ target: DIALECT, libraryOptions: vendor === 'arktype' ? { fallback } : {} });
  } catch (error) {
    throw not(
      `cannot be expressed as JSON Schema: ${errorMessage(error).replace(/\.$/, '')}. Describe the payload as it is in JSON, e.g. a date as a string (\`z.iso.datetime()\`)`,
    );
  }
}

/** Keywords whose values are data, not schemas. */
const DATA = new Set(['const', 'default', 'enum', 'examples']);

/** Keywords whose members are named by the schema's author. */
const NAMED = new Set(['definitions', 'dependencies', 'patternProperties', 'properties']);

/** A schema whose references work at another position of a document. */
function moved(schema: JsonObject, position: string): JsonObject {
  const at = (value: unknown, names: boolean): unknown => {
    if (Array.isArray(value)) return value.map((one) => at(one, false));
    if (!isObject(value)) return value;
    const members = Object.entries(value).map(([name, inner]) => {
      if (names) return [name, at(inner, false)];
      if (name === '$ref' && typeof inner === 'string') return [name, inner.replace('#', position)];
      return [name, DATA.has(name) ? inner : at(inner, NAMED.has(name))];
    });
    return Object.fromEntries(members);
  };
  const { $schema: _dialect, $id: _id, ...rest } = at(schema, false) as JsonObject;
  return rest;
}
