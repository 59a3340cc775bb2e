import { useEffect, useState } from 'preact/hooks';
import type { Reading } from '../../server/readings.ts';
import type { Api, RefusedError } from '../frame/api.ts';
import { useMailroom } from '../frame/mailroom.ts';
import { errorOf, refused } from '../frame/use-reading.ts';
import { type CauseGroup, causesOf, type ReadDeadLetter } from './causes.ts';

/** The most dead letters that are read of a source. */
export const READ_MAX = 1_000;

/** The dead letters of a source, as they were read last. */
export interface ReadSource {
  readonly isReading: boolean;
  /** Why the last reading failed; `null` after a success. */
  readonly error: RefusedError | null;
  /** `null` before the first success. Kept while a later reading fails. */
  readonly result: ReadResult | null;
}

/** The result of a reading. */
export interface ReadResult {
  readonly at: number;
  readonly command: string;
  readonly notes: readonly string[];
  /** All dead letters of the source, read or not; approximate for queues. */
  readonly total: number;
  readonly deadLetters: readonly ReadDeadLetter[];
  readonly causes: readonly CauseGroup[];
  /** Why it was not checked which would run again; `null` if it was. */
  readonly notChecked: string | null;
}

const UNREAD: ReadSource = { isReading: false, error: null, result: null };

/** Read on a click only, so the results outlive the screen. */
const sources = new Map<string, ReadSource>();
const listeners = new Set<() => void>();

/**
 * The dead letters of every source that was read, and a function that reads one. Receiving hides dead letters from other readers
 * for seconds, so nothing is read before a click.
 *
 * @example
 * ```ts
 * const { of, read } = useReadSources();
 * read('consumer:payments');
 * ```
 */
export function useReadSources() {
  const { api } = useMailroom();
  const [, setChanges] = useState(0);
  useEffect(() => {
    const listener = () => setChanges((changes) => changes + 1);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  }, []);
  return {
    of: (source: string) => sources.get(source) ?? UNREAD,
    read: (source: string) => void read(api, source),
  };
}

async function read(api: Api, source: string): Promise<void> {
  const before = sources.get(source) ?? UNREAD;
  if (before.isReading) return;
  keep(source, { ...before, isReading: true });
  try {
    keep(source, { isReading: false, error: null, result: await readSource(api, source) });
  } catch (error) {
    keep(source, { ...before, isReading: false, error: refused(error) });
  }
}

function keep(source: string, value: ReadSource): void {
  sources.set(source, value);
  for (const listener of listeners) listener();
}

/** Reads the plan of a redrive of all, which has the verdicts; without the right to check them, the list. */
async function readSource(api: Api, source: string): Promise<ReadResult> {
  const parameters = { source, limit: String(READ_MAX) };
  const plan = await api.read('redrive-plan', parameters);
  if (plan.document !== null) {
    const { count, deadLetters } = plan.document;
    return result(plan, count, deadLetters, null);
  }
  const list = await api.read('dlq', parameters);
  const refusal = errorOf(list);
  if (refusal !== null) throw refusal;
  const found = list.document?.deadLetterSources.find((listed) => listed.source === source);
  const deadLetters = found !== undefined && 'deadLetters' in found ? found.deadLetters : [];
  return result(list, found?.count ?? 0, deadLetters, plan.error?.message ?? null);
}

function result(
  { at, command, notes }: Pick<Reading, 'at' | 'command' | 'notes'>,
  total: number,
  deadLetters: readonly ReadDeadLetter[],
  notChecked: string | null,
): ReadResult {
  return { at, command, notes, total, deadLetters, causes: causesOf(deadLetters), notChecked };
}

/**
 * The contents of a dead-letter source in a sentence.
 *
 * @param source - `dead`, `stream`, `rule:<consumer>` or `consumer:<consumer>`
 */
export function sourceWords(source: string): string {
  const [kind, consumer = ''] = source.split(':');
  switch (kind) {
    case 'dead':
      return 'Events in the outbox that EventBridge refused, or whose attempts are exhausted. Kept until you decide.';
    case 'stream':
      return 'Notices of stream batches that the stream relay could not publish. The sweep publishes their events.';
    case 'rule':
      return `Events that EventBridge could not deliver to the queue of ${consumer}.`;
    default:
      return `Messages that ${consumer} could not process.`;
  }
}

/** The consumer of a source; `null` for `dead` and `stream`. */
export function consumerOf(source: string): string | null {
  return source.split(':')[1] ?? null;
}
