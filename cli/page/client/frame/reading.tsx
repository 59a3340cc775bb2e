import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { Reading, ReadingName, ReadingParameters } from '../../server/readings.ts';
import { type Api, errorOf, type RefusedError, refused } from './api.ts';
import { SameCommand } from './controls.tsx';
import { useMailroom, useNow } from './mailroom.ts';
import { Notes, Refused, State } from './state.tsx';
import { Ago } from './times.tsx';

/** The state of a reading command. */
interface UsedReading<Name extends ReadingName> {
  /** The last result; kept while the next one is read. */
  readonly reading: Reading<Name> | null;
  /** Why the last request failed; `null` after a success. */
  readonly error: RefusedError | null;
  readonly isReading: boolean;
  /** Reads; a reading that is under way is dropped. */
  readonly read: (parameters: ReadingParameters[Name]) => void;
}

/** A reading command for a screen: nothing is read before `read` is called. */
export function useReading<Name extends ReadingName>(name: Name): UsedReading<Name> {
  const { api } = useMailroom();
  const none: Omit<UsedReading<Name>, 'read'> = { reading: null, error: null, isReading: false };
  const [state, setState] = useState(none);
  const current = useRef<AbortController | undefined>(undefined);
  const read = useCallback(
    (parameters: ReadingParameters[Name]) => {
      current.current?.abort();
      const controller = new AbortController();
      current.current = controller;
      const settle = (result: Partial<UsedReading<Name>>) => {
        if (!controller.signal.aborted) setState((before) => ({ ...before, ...result, isReading: false }));
      };
      setState((before) => ({ ...before, isReading: true }));
      api.read(name, parameters, controller.signal).then(
        (reading) => settle({ reading, error: errorOf(reading) }),
        (error) => settle({ error: refused(error) }),
      );
    },
    [api, name],
  );
  useEffect(() => () => current.current?.abort(), []);
  return { ...state, read };
}

/** The last good reading of each name: a screen that is opened again shows it with its age instead of nothing. */
const kept = new Map<ReadingName, Reading>();

/** A reading command whose last result outlives its screen, and stays while a later one fails. */
export function useKeptReading<Name extends ReadingName>(name: Name): UsedReading<Name> {
  const used = useReading(name);
  if (used.reading !== null && used.reading.error === null) kept.set(name, used.reading);
  return { ...used, reading: (kept.get(name) as Reading<Name> | undefined) ?? null };
}

/** A result older than this is marked as old: others may have changed what it shows. */
const OLD_MS = 300_000;

/** A request that a control sends. */
interface UsedRequest {
  /** `sent` once it was answered. */
  readonly state: 'idle' | 'sending' | 'sent';
  /** Why the last one failed. */
  readonly error: RefusedError | null;
  /** @returns the response; `undefined` if the request failed */
  readonly send: <T>(request: (to: Api) => Promise<T>) => Promise<T | undefined>;
}

/** A request for a control. @param onError - receives the error, and `null` when a request is sent */
export function useRequest(onError?: (error: RefusedError | null) => void): UsedRequest {
  const { api } = useMailroom();
  const [used, setUsed] = useState<Omit<UsedRequest, 'send'>>({ state: 'idle', error: null });
  const settle = (state: UsedRequest['state'], error: RefusedError | null = null) => {
    setUsed({ state, error });
    onError?.(error);
  };
  return {
    ...used,
    send: async (request) => {
      settle('sending');
      try {
        const response = await request(api);
        settle('sent');
        return response;
      } catch (error) {
        settle('idle', refused(error));
        return undefined;
      }
    },
  };
}

interface ReadingBarProps {
  readonly used: {
    readonly reading: Pick<Reading, 'at' | 'command' | 'notes'> | null;
    readonly error: RefusedError | null;
    readonly isReading: boolean;
  };
  /** The work while it is read, e.g. `Checking`. */
  readonly verb: string;
  /** The controls that start it. */
  readonly children: ComponentChildren;
}

/** The controls of a reading, its age, why the last one failed, and the command that does the same. */
export function ReadingBar({ used: { reading, error, isReading }, verb, children }: ReadingBarProps) {
  return (
    <>
      <div class="row">
        {children}
        <p role="status" class="reading-state">
          {isReading ? (
            <State is="busy">{verb}</State>
          ) : (
            reading !== null && error === null && <span class="unseen">Done</span>
          )}
        </p>
        {reading !== null && !isReading && <Age at={reading.at} />}
        {reading !== null && <SameCommand line={reading.command} />}
      </div>
      <Refused error={error} />
      <Notes notes={reading?.notes ?? []} />
    </>
  );
}

function Age({ at }: { readonly at: number }) {
  const isOld = useNow() - at > OLD_MS;
  const age = (
    <>
      Read <Ago at={at} />
    </>
  );
  return <p class="reading-age">{isOld ? <State is="look">{age}</State> : age}</p>;
}
