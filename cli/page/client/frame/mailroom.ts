import { createContext } from 'preact';
import { useCallback, useContext, useEffect, useRef, useState } from 'preact/hooks';
import type { DemoState, Flow, LiveMessage, MailroomInfo, Run } from '../../server/protocol.ts';
import { type Api, RefusedError, refused } from './api.ts';

/** The live stream: `paused` while the tab is hidden, `lost` while the server does not answer. */
export type Connection = 'connecting' | 'open' | 'paused' | 'lost';

/** Everything that the screens share. */
export interface OpenMailroom {
  readonly info: MailroomInfo;
  readonly api: Api;
  readonly connection: Connection;
  /** The latest flow; `null` before the first. */
  readonly flow: Flow | null;
  /** The runs of this server, the newest first. */
  readonly runs: readonly Run[];
  readonly demo: DemoState | null;
  /** The server's clock minus this browser's, milliseconds. */
  readonly skewMs: number;
  /** Keeps a run that a request returned, before the live stream sends it. */
  readonly keep: (run: Run) => void;
}

const Context = createContext<OpenMailroom | null>(null);

/** Provides the {@link OpenMailroom} to the screens. */
export const MailroomProvider = Context.Provider;

/** The {@link OpenMailroom} of the page. @throws outside of the frame */
export function useMailroom(): OpenMailroom {
  const mailroom = useContext(Context);
  if (mailroom === null) throw new Error('A screen is shown inside the frame only.');
  return mailroom;
}

/** The time on the server, epoch milliseconds; renders again every second. */
export function useNow(): number {
  const { skewMs } = useMailroom();
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return now + skewMs;
}

/** The state of a {@link useTask}. */
interface TaskState<Result> {
  /** The last result; kept while the work is done again. */
  readonly result: Result | null;
  /** Why the work failed the last time; `null` after a success. */
  readonly error: RefusedError | null;
  readonly isBusy: boolean;
}

/** Work with the page's requests. It begins with `start`; a result of work that is under way then is dropped. */
export function useTask<Given, Result>(
  work: (api: Api, given: Given, signal: AbortSignal) => Promise<Result>,
) {
  const { api } = useMailroom();
  const [state, setState] = useState<TaskState<Result>>({ result: null, error: null, isBusy: false });
  const latest = useRef(work);
  latest.current = work;
  const current = useRef<AbortController | undefined>(undefined);
  const start = useCallback(
    (given: Given) => {
      current.current?.abort();
      const controller = new AbortController();
      current.current = controller;
      const settle = (end: Partial<TaskState<Result>>) => {
        if (!controller.signal.aborted) setState((before) => ({ ...before, ...end, isBusy: false }));
      };
      setState((before) => ({ ...before, isBusy: true }));
      latest.current(api, given, controller.signal).then(
        (result) => settle({ result, error: null }),
        (error) => settle({ error: refused(error) }),
      );
    },
    [api],
  );
  useEffect(() => () => current.current?.abort(), []);
  return { ...state, start };
}

/** The part of {@link OpenMailroom} that the live stream brings. */
type ShownLive = Pick<OpenMailroom, 'connection' | 'flow' | 'runs' | 'demo' | 'skewMs'>;

/** The pauses before the stream is opened again; the last one repeats. */
const PAUSES_MS = [500, 1_000, 2_000, 5_000];

const EMPTY: ShownLive = { connection: 'connecting', flow: null, runs: [], demo: null, skewMs: 0 };

/**
 * Follows the live stream while the tab is visible: a hidden tab closes its stream, so that the server stops polling.
 *
 * @param onKeyLost - called when the server no longer knows the key
 */
export function useLive(api: Api, onKeyLost: () => void): ShownLive & Pick<OpenMailroom, 'keep'> {
  const [live, setLive] = useState(EMPTY);
  useEffect(() => {
    const visibility = () => {
      if (document.hidden) {
        stream?.abort();
        stream = undefined;
        setLive((before) => ({ ...before, connection: 'paused' }));
      } else stream ??= follow(api, setLive, onKeyLost);
    };
    let stream: AbortController | undefined;
    visibility();
    document.addEventListener('visibilitychange', visibility);
    return () => {
      document.removeEventListener('visibilitychange', visibility);
      stream?.abort();
    };
  }, [api, onKeyLost]);
  const keep = useCallback((run: Run) => setLive((before) => received(before, { kind: 'run', run })), []);
  return { ...live, keep };
}

function follow(
  api: Api,
  change: (change: (before: ShownLive) => ShownLive) => void,
  onKeyLost: () => void,
): AbortController {
  const controller = new AbortController();
  const { signal } = controller;
  const run = async (): Promise<void> => {
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        await api.live((message) => {
          failures = 0;
          if (!signal.aborted) change((before) => ({ ...received(before, message), connection: 'open' }));
        }, signal);
      } catch (error) {
        if (error instanceof RefusedError && error.code === 'NO_KEY') return onKeyLost();
      }
      if (signal.aborted) return;
      change((before) => ({ ...before, connection: 'lost' }));
      await pause(PAUSES_MS[Math.min(failures, PAUSES_MS.length - 1)] ?? 0, signal);
    }
  };
  void run();
  return controller;
}

function received(before: ShownLive, message: LiveMessage): ShownLive {
  switch (message.kind) {
    case 'flow':
      return { ...before, flow: message.flow, skewMs: message.flow.at - Date.now() };
    case 'run':
      return { ...before, runs: withRun(before.runs, message.run) };
    case 'demo':
      return { ...before, demo: message.demo };
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/**
 * Adds the state of a run to the list, the newest run first. A run that is over does not run again: the response to a request may
 * arrive after a message of the live stream that is newer.
 */
export function withRun(runs: readonly Run[], run: Run): readonly Run[] {
  const known = runs.find(({ id }) => id === run.id);
  if (known !== undefined && known.state !== 'running' && run.state === 'running') return runs;
  const others = runs.filter(({ id }) => id !== run.id);
  return [run, ...others].sort((a, b) => b.startedAt - a.startedAt);
}
