import fc from 'fast-check';
import type { Bus, BusEntry } from '../../../lambdas/runtime/bus/event-bus.ts';
import { type MemoryBusOptions, memoryBus } from '../../../testing/index.ts';
import { anyText } from './arbitraries.ts';

/** How the bus takes one entry, or one call: well, with an error code, or by throwing (after it published, or not). */
export type Mood =
  | 'well'
  | { readonly code: string }
  | { readonly thrown: unknown; readonly published: boolean };

/** Codes of the broker's, of the configuration's, of the event's own, and unknown ones. */
const codes = fc.oneof(
  fc.constantFrom('ThrottlingException', 'InternalFailure', 'AccessDeniedException', 'ExpiredToken'),
  fc.constantFrom('MalformedDetail', 'InvalidArgument', 'ValidationException'),
  fc.constantFrom('SomethingNew', 'NO_ANSWER', ''),
  anyText,
);
const thrown = fc.oneof(
  codes.map((name) => Object.assign(new Error('no'), { name })),
  fc.anything(),
);

/** What one invocation, or a few, meet at the bus. */
export interface Moods {
  readonly entries: readonly Mood[];
  readonly calls: readonly Mood[];
}

/** Moods of a bus that takes most of what it is given. */
export const moods: fc.Arbitrary<Moods> = fc.record({
  entries: row(codes.map((code) => ({ code }))),
  calls: row(fc.record({ thrown, published: fc.boolean() })),
});

function row(bad: fc.Arbitrary<Mood>): fc.Arbitrary<Mood[]> {
  const one = fc.oneof({ weight: 2, arbitrary: fc.constant('well' as const) }, { weight: 1, arbitrary: bad });
  return fc.array(one, { maxLength: 20, size: 'max' });
}

/** A bus in these moods, one after the other; when they are through, it is well. */
export function moodyBus({ entries, calls }: Moods, options: Pick<MemoryBusOptions, 'clock'>) {
  let entry = 0;
  const confirmed: string[] = [];
  const bus = memoryBus({
    ...options,
    failCall: ({ number }) => {
      const mood = calls[number - 1];
      return isThrow(mood) ? { error: mood.thrown, published: mood.published } : undefined;
    },
    failEntry: () => {
      const mood = entries[entry];
      entry += 1;
      return isCode(mood) ? { code: mood.code, message: 'no' } : undefined;
    },
  });
  const put: Bus['put'] = async (given, timeoutMs) => {
    const results = await bus.put(given, timeoutMs);
    confirmed.push(...given.filter((_, i) => results[i]?.ok).map(eventIdOf));
    return results;
  };
  return {
    put,
    /** The ids of the events that it published, in their order. */
    publishedIds: () => bus.published().map(eventIdOf),
    /** The ids of the events of which it said that it took them. */
    confirmedIds: () => confirmed,
  };
}

function isThrow(mood: Mood | undefined): mood is Extract<Mood, { published: boolean }> {
  return typeof mood === 'object' && 'published' in mood;
}

function isCode(mood: Mood | undefined): mood is Extract<Mood, { code: string }> {
  return typeof mood === 'object' && 'code' in mood;
}

function eventIdOf({ detail }: BusEntry): string {
  const { eventId } = JSON.parse(detail) as { eventId?: unknown };
  return String(eventId);
}
