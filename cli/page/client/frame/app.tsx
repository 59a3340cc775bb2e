import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import type { MailroomInfo } from '../../server/protocol.ts';
import { type Api, createApi, exchangeToken, type RefusedError } from './api.ts';
import { MailroomProvider } from './mailroom.ts';
import { Refused } from './notice.tsx';
import { type AppProps, Shell } from './shell.tsx';
import { useLive } from './use-live.ts';
import { refused } from './use-reading.ts';

type State =
  | { readonly is: 'opening' }
  | { readonly is: 'no-key' }
  | { readonly is: 'refused'; readonly error: RefusedError }
  | { readonly is: 'open'; readonly api: Api; readonly info: MailroomInfo };

/** The page: gets its key, then shows the frame. */
export function App(props: AppProps) {
  const [state, setState] = useState<State>({ is: 'opening' });
  const loseKey = useCallback(() => setState({ is: 'no-key' }), []);
  useEffect(() => {
    open().then(setState, (error) => setState({ is: 'refused', error: refused(error) }));
  }, []);
  switch (state.is) {
    case 'opening':
      return <p class="alone">Opening</p>;
    case 'no-key':
      return <NoKey />;
    case 'refused':
      return (
        <main class="alone">
          <h1>Mailroom</h1>
          <Refused error={state.error} />
          <p>
            Press <kbd>Enter</kbd> in the terminal that serves this page to open a new tab.
          </p>
        </main>
      );
    case 'open':
      return <Open {...props} api={state.api} info={state.info} onKeyLost={loseKey} />;
  }
}

/** The key lives in this tab's memory only, so a reload loses it. */
function NoKey() {
  return (
    <main class="alone">
      <h1>Mailroom</h1>
      <p>This tab has no key. The key is kept only in the memory of a tab, so a reload discards it.</p>
      <p>
        Press <kbd>Enter</kbd> in the terminal that serves this page to open a new tab. If nothing runs there,
        start <code>mailroom ui</code>, or the demo, again.
      </p>
    </main>
  );
}

async function open(): Promise<State> {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (token === null) return { is: 'no-key' };
  // The token works once and must not stay in the address bar.
  history.replaceState(null, '', '#/');
  const api = createApi(await exchangeToken(token));
  return { is: 'open', api, info: await api.mailroom() };
}

interface OpenProps extends AppProps {
  readonly api: Api;
  readonly info: MailroomInfo;
  readonly onKeyLost: () => void;
}

function Open({ api, info, onKeyLost, screens, slots }: OpenProps) {
  const live = useLive(api, onKeyLost);
  const mailroom = useMemo(() => ({ api, info, ...live }), [api, info, live]);
  return (
    <MailroomProvider value={mailroom}>
      <Shell screens={screens} slots={slots} />
    </MailroomProvider>
  );
}
