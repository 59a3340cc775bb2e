import { useEffect, useState } from 'preact/hooks';
import type { deadLetterJson } from '../../../reports/dead-letters/dead-letter-text.ts';
import type { RedriveVerdict } from '../../../reports/dead-letters/redrive-plan.ts';
import type { StatusDocument } from '../../server/protocol.ts';
import type { Reading, ReadingDocuments } from '../../server/readings.ts';
import { type Api, errorOf, type RefusedError, refused } from '../frame/api.ts';
import { groupsOf } from '../frame/format.ts';
import { useMailroom } from '../frame/mailroom.ts';

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
export interface ReadResult extends Pick<Reading, 'at' | 'command' | 'notes'> {
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
 */
export function useReadSources() {
  const { api } = useMailroom();
  const [, setChanges] = useState(0);
  useEffect(() => {
    const listener = () => setChanges((changes) => changes + 1);
    listeners.add(listener);
    return () => void listeners.delete(listener);
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
  const result = (
    { at, command, notes }: Reading,
    { count, deadLetters }: { readonly count: number; readonly deadLetters: readonly ReadDeadLetter[] },
    notChecked: string | null,
  ): ReadResult => ({
    ...{ at, command, notes, total: count, deadLetters, notChecked },
    causes: causesOf(deadLetters),
  });
  const plan = await api.read('redrive-plan', parameters);
  if (plan.document !== null) return result(plan, plan.document, null);
  const list = await api.read('dlq', parameters);
  const refusal = errorOf(list);
  if (refusal !== null) throw refusal;
  const found = list.document?.deadLetterSources.find((listed) => listed.source === source);
  return result(list, { count: 0, deadLetters: [], ...found }, plan.error?.message ?? null);
}

/**
 * The number of dead letters of a source, by the newer of its last reading and the live status; `undefined` if neither is known.
 */
export function totalOf(
  source: string,
  result: Pick<ReadResult, 'at' | 'total'> | null,
  status: Pick<StatusDocument, 'at' | 'deadLetterSources'> | null,
): number | undefined {
  if (status === null || (result !== null && result.at > status.at)) return result?.total;
  return status.deadLetterSources.find((known) => known.source === source)?.count ?? 0;
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

/** A dead letter as it was read: with its verdict if the redrive could be planned. */
export type ReadDeadLetter = ReturnType<typeof deadLetterJson> &
  Partial<Pick<ReadingDocuments['redrive-plan']['deadLetters'][number], 'verdict' | 'code' | 'message'>>;

/** The dead letters of one cause. Times are epoch milliseconds. */
export interface CauseGroup {
  /** `null`: the cause is unknown. */
  readonly fingerprint: string | null;
  /** Oldest first. */
  readonly deadLetters: readonly ReadDeadLetter[];
  readonly oldestAt: number | null;
  /** When the first is permanently deleted; `null` if none is. */
  readonly firstExpiryAt: number | null;
  /** The number of dead letters with each verdict of a redrive; empty if they were not judged. */
  readonly verdicts: ReadonlyMap<RedriveVerdict, number>;
  /** The earlier numbers for which those that are out of order wait, each once. */
  readonly waitsFor: readonly string[];
}

/** Groups dead letters by cause, the most frequent first. */
export function causesOf(deadLetters: readonly ReadDeadLetter[]): CauseGroup[] {
  return [...groupsOf(deadLetters, ({ fingerprint }) => fingerprint)]
    .map(([fingerprint, group]) => {
      const judged = groupsOf(
        group.flatMap(({ verdict }) => verdict ?? []),
        (verdict) => verdict,
      );
      return {
        fingerprint,
        deadLetters: group.toSorted((a, b) => (a.sentAt ?? 0) - (b.sentAt ?? 0)),
        oldestAt: least(group.map(({ sentAt }) => sentAt)),
        firstExpiryAt: least(group.map(({ expiresAt }) => expiresAt)),
        waitsFor: [
          ...new Set(group.flatMap(({ verdict, message }) => (verdict === 'out-of-order' && message) || [])),
        ],
        verdicts: new Map([...judged].map(([verdict, all]) => [verdict, all.length])),
      };
    })
    .sort((a, b) => b.deadLetters.length - a.deadLetters.length);
}

/**
 * The choice of exactly the dead letters of a cause: by the cause, which the command finds as a part of others, or else by id.
 *
 * @param all - the causes of the source
 */
export function choiceOf(
  { fingerprint, deadLetters }: CauseGroup,
  all: readonly CauseGroup[],
): { readonly cause: string } | { readonly ids: readonly string[] } {
  const wanted = fingerprint?.toLowerCase() ?? '';
  const found = all.filter((group) => (group.fingerprint ?? '').toLowerCase().includes(wanted));
  if (fingerprint !== null && found.length === 1) return { cause: fingerprint };
  return { ids: deadLetters.map(({ id }) => id) };
}

function least(times: readonly (number | null)[]): number | null {
  return times.reduce((a, b) => (a === null || (b !== null && b < a) ? b : a), null);
}
