import { type Clock, systemClock } from '../lambdas/runtime/base/clock.ts';
import {
  type Bus,
  type BusEntry,
  type BusResult,
  PUT_EVENTS_BYTES_MAX,
  PUT_EVENTS_ENTRIES_MAX,
} from '../lambdas/runtime/bus/event-bus.ts';
import { deliveredEvent } from '../lambdas/runtime/operations/delivered-event.ts';
import { sequentialId } from './sequential-id.ts';
import { ValidationException } from './validation-exception.ts';

/** The size of an entry's time (EventBridge user guide, calculating PutEvents entry size). */
const TIME_BYTES = 14;

/** One call of `put`. */
export interface PutCall {
  /** The number of this call, from 1. */
  readonly number: number;
  /** The entries to publish. */
  readonly entries: readonly BusEntry[];
  /** The caller's timeout in milliseconds. */
  readonly timeoutMs: number;
}

/** The failure of a whole call. */
export interface CallFailure {
  /** The error that the call throws. */
  readonly error: unknown;
  /** Set if the entries were published and only the response was lost. @default false */
  readonly published?: boolean | undefined;
}

/** Options of {@link memoryBus}. */
export interface MemoryBusOptions {
  /** @default the system clock */
  readonly clock?: Clock | undefined;
  /** Called for every call of `put`: a returned failure makes the whole call throw. @default no call fails */
  readonly failCall?: ((call: PutCall) => CallFailure | undefined) | undefined;
  /** Called for every entry: a returned failure becomes that entry's result. @default no entry fails */
  readonly failEntry?:
    | ((entry: BusEntry, call: PutCall) => { readonly code: string; readonly message: string } | undefined)
    | undefined;
}

/** One published entry. */
export interface Published extends BusEntry {
  /** EventBridge's own id, a new one for every publish. */
  readonly id: string;
  /** Epoch milliseconds. */
  readonly publishedAt: number;
}

/** Selects the entries of a route; an absent member matches all. */
export interface BusPattern {
  /** The sources that it matches. @default all */
  readonly source?: readonly string[] | undefined;
  /** The event types that it matches. @default all */
  readonly detailType?: readonly string[] | undefined;
}

/** An in-memory {@link Bus}. */
export interface MemoryBus extends Bus {
  /** The published entries, oldest first. */
  published(): Published[];
  /** Every call of `put`, oldest first, including failed ones. */
  calls(): PutCall[];
  /** Sends every entry published from now on to a queue, like a rule with an SQS target. @param pattern - @default all */
  routeTo(queue: { send(body: string): unknown }, pattern?: BusPattern): void;
}

/**
 * Creates an in-memory EventBridge, with failures on demand.
 *
 * @example
 * ```ts
 * const bus = memoryBus({
 *   failEntry: (entry, call) => (call.number === 1 ? { code: 'ThrottlingException', message: 'slow down' } : undefined),
 * });
 * bus.routeTo(queue, { detailType: ['OrderPlaced'] });
 * ```
 */
export function memoryBus(options: MemoryBusOptions = {}): MemoryBus {
  const { clock = systemClock, failCall, failEntry } = options;
  const published: Published[] = [];
  const calls: PutCall[] = [];
  const routes: ((entry: Published) => void)[] = [];

  function publish(entry: BusEntry): BusResult {
    const id = sequentialId(3, published.length + 1);
    const record = { ...entry, id, publishedAt: clock.now() };
    published.push(record);
    for (const route of routes) route(record);
    return { ok: true, id };
  }

  return {
    put: async (entries, timeoutMs) => {
      const call = { number: calls.length + 1, entries: structuredClone([...entries]), timeoutMs };
      calls.push(call);
      assertCall(entries);
      const failure = failCall?.(call);
      if (failure && !failure.published) throw failure.error;
      const results = call.entries.map((entry): BusResult => {
        const refusal = failEntry?.(entry, call) ?? refusalOf(entry);
        return refusal ? { ok: false, ...refusal } : publish(entry);
      });
      if (failure) throw failure.error;
      return results;
    },
    published: () => [...published],
    calls: () => [...calls],
    routeTo: (queue, { source, detailType } = {}) => {
      routes.push((entry) => {
        const matches =
          (source?.includes(entry.source) ?? true) && (detailType?.includes(entry.detailType) ?? true);
        if (matches) queue.send(eventBridgeMessage(entry));
      });
    },
  };
}

/** The body of the message that an SQS target receives for a published entry. */
export function eventBridgeMessage(entry: Published): string {
  return deliveredEvent(
    { source: entry.source, type: entry.detailType, envelope: entry.detail },
    { account: '000000000000', region: 'us-east-1', time: entry.publishedAt, id: entry.id },
  );
}

function assertCall(entries: readonly BusEntry[]): void {
  if (entries.length === 0 || entries.length > PUT_EVENTS_ENTRIES_MAX) {
    throw new ValidationException(
      `${entries.length} entries: Member must have length between 1 and ${PUT_EVENTS_ENTRIES_MAX}`,
    );
  }
  const bytes = entries.reduce((total, entry) => total + entryBytes(entry), 0);
  if (bytes >= PUT_EVENTS_BYTES_MAX) {
    throw new ValidationException(
      `Total size of the entries in the request is over the limit: ${bytes} bytes; below ${PUT_EVENTS_BYTES_MAX} are allowed`,
    );
  }
}

function entryBytes({ source, detailType, detail }: BusEntry): number {
  return TIME_BYTES + Buffer.byteLength(source) + Buffer.byteLength(detailType) + Buffer.byteLength(detail);
}

function refusalOf({ source, detailType, detail }: BusEntry): { code: string; message: string } | undefined {
  if (source === '') return missing('Source');
  if (detailType === '') return missing('DetailType');
  return isJsonObject(detail) ? undefined : { code: 'MalformedDetail', message: 'Detail is malformed.' };
}

function missing(name: string): { code: string; message: string } {
  return {
    code: 'InvalidArgument',
    message: `Parameter ${name} is not valid. Reason: ${name} is a required argument.`,
  };
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
