import type { ComponentChildren, ComponentType } from 'preact';
import { useCallback, useEffect, useErrorBoundary, useMemo, useRef, useState } from 'preact/hooks';
import type { MailroomInfo } from '../../server/protocol.ts';
import { type Api, createApi, exchangeToken, type RefusedError, refused } from './api.ts';
import { Busy, useSlow } from './busy.tsx';
import { count, type Headline, headlineOf } from './format.ts';
import { Band, Search, Shortcuts } from './head.tsx';
import { MailroomProvider, useLive, useMailroom } from './mailroom.ts';
import { focusMain, hasFocus, MAIN, parseRoute, type Route, routeTo, type Screen } from './route.ts';
import { Icon, Notice, Refused } from './state.tsx';

/** The parts that the frame shows. */
interface AppProps {
  readonly screens: readonly Screen[];
  /** The changes that are being made: above every screen. */
  readonly Runs: ComponentType;
}

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
      return (
        <Alone>
          <p role="status">
            <Busy verb="Opening" what="the Mailroom's directory entry and account" />
          </p>
        </Alone>
      );
    case 'no-key':
      // The key lives in this tab's memory only, so a reload loses it.
      return (
        <Alone>
          <p>This tab has no key. The key is kept only in the memory of a tab, so a reload discards it.</p>
          <p>
            {NEW_TAB} If nothing runs there, start <code>mailroom ui</code>, or the demo, again.
          </p>
        </Alone>
      );
    case 'refused':
      return (
        <Alone>
          <Refused error={state.error} />
          <p>{NEW_TAB}</p>
        </Alone>
      );
    case 'open':
      return <Open {...props} api={state.api} info={state.info} onKeyLost={loseKey} />;
  }
}

const NEW_TAB = (
  <>
    Press <kbd>Enter</kbd> in the terminal that serves the web console to open a new tab.
  </>
);

function Alone({ children }: { readonly children: ComponentChildren }) {
  return (
    <main class="alone">
      <h1>Mailroom</h1>
      {children}
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

function Open({ api, info, onKeyLost, ...parts }: OpenProps) {
  const live = useLive(api, onKeyLost);
  const mailroom = useMemo(() => ({ api, info, ...live }), [api, info, live]);
  return (
    <MailroomProvider value={mailroom}>
      <Shell {...parts} />
    </MailroomProvider>
  );
}

/** The headline if the first status takes long. The Flow screen names what is checked. */
const CHECKING: Headline = { is: 'idle', text: 'Checking…' };

/** The frame around every screen. */
function Shell({ screens, Runs }: AppProps) {
  const route = useRoute();
  const mailroom = useMailroom();
  const screen = screens.find(({ name }) => name === route.screen) ?? screens[0];
  const status = mailroom.flow?.status ?? null;
  const isSlow = useSlow(status === null);
  const headline = isSlow ? CHECKING : headlineOf(status);
  useEffect(() => {
    document.title = `${headline.text} · ${screen?.title} · ${mailroom.info.stack} · Mailroom`;
  }, [headline.text, screen?.title, mailroom.info.stack]);
  // A new screen is read from its beginning, by eyes and by screen readers; so is a part of it that replaced the link to it.
  const place = `${route.screen}/${route.argument}`;
  const opened = useRef({ place, route });
  useEffect(() => {
    const before = opened.current;
    opened.current = { place, route };
    if (before.route === route || (before.place === place && hasFocus())) return;
    window.scrollTo(0, 0);
    // A screen that is higher than the window would be scrolled, and the verdict above it be out of sight.
    focusMain({ preventScroll: true });
  }, [place, route]);
  const tabs = useRef<HTMLElement>(null);
  useEffect(() => {
    const open = tabs.current?.querySelector('[aria-current]');
    open?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [screen?.name]);
  if (screen === undefined) return null;
  return (
    <>
      <button type="button" class="skip" onClick={() => focusMain()}>
        Skip to the content
      </button>
      <Band />
      <header class="head">
        <p class={`headline is-${headline.is}`} role="status">
          <Icon name={headline.is} />
          <span>{headline.text}</span>
        </p>
        <nav ref={tabs} aria-label="Screens" class="tabs">
          <ul>
            {screens.map(({ name, title, countOf }) => {
              const number = countOf?.(mailroom) ?? 0;
              return (
                <li key={name}>
                  <a href={routeTo(name)} aria-current={name === screen.name ? 'page' : undefined}>
                    {title}
                    {number > 0 && <span class="badge">{count(number)}</span>}
                  </a>
                </li>
              );
            })}
          </ul>
        </nav>
        <Search />
      </header>
      <main
        id={MAIN}
        tabIndex={-1}
        aria-label={screen.title}
        class={mailroom.connection === 'lost' ? 'is-old' : undefined}
      >
        {mailroom.connection === 'lost' && (
          <div role="alert">
            <Notice is="broken" title="The web console's server is not responding">
              <p>
                The data below is stale. Start <code>mailroom ui</code>, or the demo, again in the terminal.
                It opens a new tab.
              </p>
            </Notice>
          </div>
        )}
        <Runs />
        <Guarded key={screen.name} title={screen.title} place={place}>
          <screen.View route={route} />
        </Guarded>
      </main>
      <Shortcuts screens={screens} />
    </>
  );
}

function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const change = () => setRoute(parseRoute(location.hash));
    addEventListener('hashchange', change);
    return () => removeEventListener('hashchange', change);
  }, []);
  return route;
}

interface GuardedProps {
  readonly title: string;
  /** Another place of the same screen is tried again. */
  readonly place: string;
  readonly children: ComponentChildren;
}

/** Keeps the frame when a screen fails, and shows the error in the screen's place. */
function Guarded({ title, place, children }: GuardedProps) {
  const [error, reset] = useErrorBoundary();
  const failedAt = useRef(place);
  useEffect(() => {
    if (failedAt.current !== place) reset();
    failedAt.current = place;
  }, [place, reset]);
  if (error === undefined) return <>{children}</>;
  return (
    <>
      <h1>{title}</h1>
      <Refused error={refused(error)} />
      <p>This screen could not display the result. Run its command in a terminal instead.</p>
      <p>
        <button type="button" onClick={reset}>
          Try again
        </button>
      </p>
    </>
  );
}
