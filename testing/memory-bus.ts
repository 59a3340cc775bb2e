import {
  type Bus,
  type BusEntry,
  type BusResult,
  PUT_EVENTS_BYTES_MAX,
  PUT_EVENTS_ENTRIES_MAX,
} from '../lambdas/runtime/bus/event-bus.ts';
import { type Clock, systemClock } from '../lambdas/runtime/clock.ts';
import { deliveredEvent } from '../lambdas/runtime/operations/delivered-event.ts';
import { sequentialId } from './sequential-id.ts';
import { ValidationException } from './validation-exception.ts';

/** What an entry's time counts in its size (EventBridge user guide, calculating PutEvents entry size). */
const TIME_BYTES = 14;

/** One call of `put`. */
export interface PutCall {
  /** Which call this is, from 1. */
  readonly number: number;
  /** What is to be published. */
  readonly entries: readonly BusEntry[];
  /** When the caller gives it up, milliseconds. */
  readonly timeoutMs: number;
}

/** A failure of a whole call. */
export interface CallFailure {
  /** What the call throws. */
  readonly error: unknown;
  /** Whether the entries were published all the same and only the answer was lost. @default false */
  readonly published?: boolean | undefined;
}

/** The settings of {@link memoryBus}. */
export interface MemoryBusOptions {
  /** @default the machine's clock */
  readonly clock?: Clock | undefined;
  /** Asked at every call: a failure makes the whole call throw. @default no call fails */
  readonly failCall?: ((call: PutCall) => CallFailure | undefined) | undefined;
  /** Asked for every entry: a failure is that entry's result. @default no entry fails */
  readonly failEntry?:
    | ((entry: BusEntry, call: PutCall) => { readonly code: string; readonly message: string } | undefined)
    | undefined;
}

/** One entry that was published. */
export interface Published extends BusEntry {
  /** EventBridge's own id, a new one at every publish. */
  readonly id: string;
  /** Epoch milliseconds. */
  readonly publishedAt: number;
}

/** Which entries a route takes; a member that is absent takes all. */
export interface BusPattern {
  /** The services whose events it takes. @default all */
  readonly source?: readonly string[] | undefined;
  /** The event types that it takes. @default all */
  readonly detailType?: readonly string[] | undefined;
}

/** A {@link Bus} in memory. */
export interface MemoryBus extends Bus {
  /** What was published, oldest first. */
  published(): Published[];
  /** Every call of `put`, oldest first, also those that failed. */
  calls(): PutCall[];
  /** Sends every entry published from now on to a queue, as a rule with an SQS target does. @param pattern - @default all */
  routeTo(queue: { send(body: string): unknown }, pattern?: BusPattern): void;
}

/**
 * EventBridge in memory, with failures on demand.
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

/** The body of the message that an SQS target gets for a published entry. */
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
