import { createHash } from 'node:crypto';
import type { ExternalSubscription } from '../events/external-event.ts';

/** A value that identifies an external event, together with its source, its type and the values of its other id fields. */
export type ExternalIdValue = string | number;

const EXTERNAL_EVENT_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/**
 * Computes the event id of an external event: a UUIDv8 (RFC 9562) from the SHA-256 of its source, its type, the paths of its id fields
 * and their values. Every delivery of the event has the same id, whatever message carries it, and it never equals the id of a
 * Mailroom event, which is a UUIDv7.
 *
 * The paths keep the order 7 apart from the payment 7 when a definition changes from one field to another. All are hashed as a JSON
 * list: it keeps `["a","b"]` and `["a\",\"b"]` apart, a number and its text, and lone surrogates,
 * which UTF-8 alone would make equal.
 *
 * @example
 * ```ts
 * externalEventId({ source: 'stripe', type: 'charge.succeeded', external: { id: ['id'] } }, ['evt_1Nq']); // '19cd5e14-fb95-8299-a7ce-648142b60cef'
 * ```
 */
export function externalEventId(
  { source, type, external }: ExternalSubscription,
  id: readonly ExternalIdValue[],
): string {
  const bytes = createHash('sha256')
    .update(JSON.stringify([source, type, external.id ?? null, id]))
    .digest();
  bytes[6] = 0x80 | (bytes.readUInt8(6) & 0x0f);
  bytes[8] = 0x80 | (bytes.readUInt8(8) & 0x3f);
  const hex = bytes.toString('hex', 0, 16);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** Returns true for the event id of an external event: a UUIDv8 in lowercase. */
export function isExternalEventId(text: unknown): text is string {
  return typeof text === 'string' && EXTERNAL_EVENT_ID.test(text);
}

/** Formats the values of the id fields as handlers and operators see them: the value of a single field, otherwise a JSON list. */
export function externalIdText(id: readonly ExternalIdValue[]): string {
  const [only] = id;
  return id.length === 1 ? String(only) : JSON.stringify(id);
}

/**
 * Returns the values that a text may stand for: the reverse of {@link externalIdText}. A value such as `42` stands for a string or
 * for a number, because an operator who copies it cannot tell which of them the publisher wrote.
 *
 * @param count - the number of id fields
 * @returns the values as they were typed first
 */
export function externalIdsOf(text: string, count: number): (readonly ExternalIdValue[])[] {
  const given = count === 1 ? [text] : listIn(text);
  if (given.length !== count || !given.every(isExternalIdValue)) return [];
  return given.reduce<ExternalIdValue[][]>(
    (ids, value) => ids.flatMap((id) => formsOf(value).map((form) => [...id, form])),
    [[]],
  );
}

/** A value as it was typed, then in its other form, if it is a whole number. */
function formsOf(value: ExternalIdValue): readonly ExternalIdValue[] {
  if (!isWholeNumber(String(value))) return [value];
  return typeof value === 'string' ? [value, Number(value)] : [value, String(value)];
}

function listIn(text: string): readonly unknown[] {
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) ? list : [];
  } catch {
    return [];
  }
}

function isExternalIdValue(value: unknown): value is ExternalIdValue {
  return typeof value === 'string' || typeof value === 'number';
}

function isWholeNumber(text: string): boolean {
  return Number.isSafeInteger(Number(text)) && String(Number(text)) === text;
}
