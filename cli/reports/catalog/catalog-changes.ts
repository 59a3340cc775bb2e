import { isDeepStrictEqual } from 'node:util';
import type { ReadCatalog } from './catalog-document.ts';
import { ANY, isClosed, restOf, type SchemaField, type SchemaFields, without } from './schema-fields.ts';
import type { JsonObject } from './schema-source.ts';

interface EventChange {
  /** E.g. `data.lines[].sku` or `version`; `null` for the event itself. */
  readonly path: string | null;
  /** The new definition rejects older events, or the event lacks what consumers may use. */
  readonly breaking: boolean;
  /** The old definition rejects new events, so every consumer needs the new one before a producer does. */
  readonly consumersFirst: boolean;
  readonly text: string;
}

/** One change of a catalog. */
export interface CatalogChange extends EventChange {
  /** The source of the event, before the change. */
  readonly source: string;
  readonly type: string;
}

/** Compares two catalogs. @returns the breaking changes first */
export function catalogChanges(before: ReadCatalog, after: ReadCatalog): readonly CatalogChange[] {
  const added = new Map([...after].filter(([key]) => !before.has(key)));
  const ofType = new Map<string, string[]>();
  for (const [key, { type }] of added) {
    const keys = ofType.get(type) ?? [];
    keys.push(key);
    ofType.set(type, keys);
  }
  const known = [...before].flatMap(([key, old]) => {
    // An event of the same type from another source.
    const successor = (after.has(key) ? undefined : ofType.get(old.type)?.shift()) ?? key;
    const now = after.get(successor);
    added.delete(successor);
    const changes = now === undefined ? [broken(null, 'removed')] : eventChanges(old, now);
    return changes.map((change) => ({ source: old.source, type: old.type, ...change }));
  });
  const fresh = [...added.values()].map(({ source, type }) => ({ source, type, ...fine(null, 'new') }));
  return [...known, ...fresh].toSorted((a, b) => Number(b.breaking) - Number(a.breaking));
}

const broken = (path: string | null, text: string): EventChange => ({
  path,
  breaking: true,
  consumersFirst: false,
  text,
});
const fine = (path: string | null, text: string): EventChange => ({ ...broken(path, text), breaking: false });
const wider = (path: string, text: string): EventChange => ({ ...fine(path, text), consumersFirst: true });

type Event = ReadCatalog extends ReadonlyMap<string, infer E> ? E : never;

function eventChanges(old: Event, now: Event): EventChange[] {
  const names = (['source', 'aggregateType'] as const).filter((name) => old[name] !== now[name]);
  const payload = payloadChanges(old.fields, now.fields);
  // Consumers read older payloads through upcast.
  const isConverted = now.version > old.version && now.upcast;
  return [
    ...names.map((name) => broken(name, `${old[name]} → ${now[name]}`)),
    ...versionChanges(old, now),
    ...(old.sequence && !now.sequence ? [broken('sequence', 'no longer declared')] : []),
    ...(now.sequence && !old.sequence ? [fine('sequence', 'declared')] : []),
    ...payload.map((one) => (isConverted ? { ...one, breaking: false, consumersFirst: true } : one)),
  ];
}

function versionChanges(old: Event, now: Event): EventChange[] {
  const text = `${old.version} → ${now.version}`;
  if (now.version < old.version) return [broken('version', text)];
  if (now.version === old.version)
    return old.upcast && !now.upcast ? [broken('version', 'no upcast for older versions')] : [];
  return [now.upcast ? wider('version', `${text} with upcast`) : broken('version', `${text} without upcast`)];
}

/** Compares the fields of two payloads. What it cannot compare, such as two patterns, counts as narrower. */
function payloadChanges(old: SchemaFields, now: SchemaFields): EventChange[] {
  const has = (fields: SchemaFields, [path, kind]: SchemaField['within']) =>
    path === '' || fields.get(path)?.kinds.has(kind) === true;
  return [...new Set([...old.keys(), ...now.keys()])].flatMap((path): EventChange[] => {
    const [was, is] = [old.get(path), now.get(path)];
    // The loss or gain of what it is in is listed instead.
    if ((was && !has(now, was.within)) || (is && !has(old, is.within))) return [];
    const isRest = path.endsWith('.*') || path.endsWith('[]');
    const within = (was ?? is)?.within ?? ['', ''];
    const [before, after] = isRest ? [was ?? othersOf(old, within), is ?? othersOf(now, within)] : [was, is];
    if (after === undefined) return [broken(path, 'removed')];
    if (before !== undefined) return valueChanges(before, after, path);
    if (after.isRequired) return [broken(path, 'new and required')];
    // Older events can have it among their other fields.
    const rest = old.get(restOf(within));
    const narrower = rest ? valueChanges(rest, after, path).filter((change) => change.breaking) : [];
    if (narrower.length > 0) return narrower;
    return [rest || isClosed(old, within) ? wider(path, 'new and optional') : fine(path, 'new and optional')];
  });
}

/** The other fields or items of a schema that does not mention them: none if it is closed, or any. */
function othersOf(fields: SchemaFields, within: SchemaField['within']): SchemaField {
  const kinds = isClosed(fields, within) ? new Map() : new Map([[ANY, {}]]);
  return { isRequired: false, within: ['', ''], kinds };
}

function valueChanges(old: SchemaField, now: SchemaField, path: string): EventChange[] {
  const gone = [...old.kinds.keys()].filter((kind) => !now.kinds.has(kind));
  const added = [...now.kinds.keys()].filter((kind) => !old.kinds.has(kind));
  const shared = [...old.kinds].flatMap(([kind, was]) => {
    const is = now.kinds.get(kind);
    return is === undefined ? [] : constraintChanges(was, is, path);
  });
  const required = now.isRequired ? broken(path, 'optional → required') : wider(path, 'required → optional');
  return [
    ...(old.isRequired === now.isRequired ? [] : [required]),
    ...kindChanges(gone, added, gone.length < old.kinds.size, path),
    ...shared,
  ];
}

function kindChanges(gone: string[], added: string[], isPart: boolean, path: string): EventChange[] {
  const text = `${gone.join(' or ')} → ${added.join(' or ')}`;
  if (added.includes(ANY)) return [wider(path, text)];
  if (gone.length > 0 && !isPart) return [broken(path, text)];
  return [
    ...gone.map((kind) => broken(path, `no longer ${kind}`)),
    ...added.map((kind) => wider(path, `also ${kind}`)),
  ];
}

/** Keywords whose higher number is narrower, and those whose lower number is. */
const LOWER = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'];
const UPPER = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'];

function constraintChanges(old: JsonObject, now: JsonObject, path: string): EventChange[] {
  return [...new Set([...Object.keys(old), ...Object.keys(now)])].flatMap((keyword): EventChange[] => {
    const [was, is] = [old[keyword], now[keyword]];
    if (isDeepStrictEqual(was, is)) return [];
    const text = `${keyword} ${shown(was)} → ${shown(is)}`;
    if (is === undefined) return [wider(path, text)];
    if (Array.isArray(was) && Array.isArray(is) && keyword === 'values') {
      const [gone, added] = [without(was, is), without(is, was)];
      return [
        ...(gone.length > 0 ? [broken(path, `no longer ${gone.map(shown).join(', ')}`)] : []),
        ...(added.length > 0 ? [wider(path, `also ${added.map(shown).join(', ')}`)] : []),
      ];
    }
    const isLooser = LOWER.includes(keyword) ? Number(is) < Number(was) : Number(is) > Number(was);
    const isLimit = was !== undefined && [...LOWER, ...UPPER].includes(keyword);
    return [isLimit && isLooser ? wider(path, text) : broken(path, text)];
  });
}

function shown(value: unknown): string {
  return value === undefined ? 'none' : JSON.stringify(value);
}
