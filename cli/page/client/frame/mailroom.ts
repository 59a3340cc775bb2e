import { createContext } from 'preact';
import { useContext, useEffect, useState } from 'preact/hooks';
import type { DemoState, Flow, MailroomInfo, Run } from '../../server/protocol.ts';
import type { Api } from './api.ts';

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
  /** Keeps a run or the demo's state that a request returned, before the live stream sends it. */
  readonly keep: (change: { readonly run?: Run; readonly demo?: DemoState }) => void;
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

/** The time on the server, epoch milliseconds; renders again at every interval. */
export function useNow(everyMs = 1_000): number {
  const { skewMs } = useMailroom();
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now + skewMs;
}
