import { useEffect, useRef } from 'preact/hooks';
import { roughly } from './format.ts';
import { type Connection, useMailroom, useNow } from './mailroom.ts';
import { routeTo, type Screen } from './route.ts';
import { Icon } from './state.tsx';
import { Fact } from './table.tsx';

/** Live data older than this is stale: five of its intervals. */
const STALE_MS = 10_000;

/** The environment, the permitted changes and the age of the data: on every screen. */
export function Band() {
  const { stack, region, account, isLocal, allowsChanges, isDemo } = useMailroom().info;
  return (
    <section class={`band ${isLocal ? 'is-local' : 'is-aws'}`} aria-label="Environment">
      <span class="brand">
        <Icon name="mailroom" />
        Mailroom
      </span>
      <span class="place">{isDemo ? 'Demo' : isLocal ? 'Local' : 'AWS'}</span>
      <dl>
        <Fact title="Stack">
          <strong>{stack}</strong>
        </Fact>
        <Fact title="Account">{isLocal ? null : account}</Fact>
        <Fact title="Region">{region}</Fact>
        <Fact title={<span class="unseen">Changes</span>} class={allowsChanges ? 'allowed' : undefined}>
          <Icon name={allowsChanges ? 'edit' : 'lock'} />
          {allowsChanges ? 'Changes allowed' : 'Read-only'}
        </Fact>
        <Fact title={<span class="unseen">Data</span>} class="far">
          <Age />
        </Fact>
      </dl>
    </section>
  );
}

const WORDS: Readonly<Record<Connection, string>> = {
  connecting: 'Connecting',
  open: 'Live',
  paused: 'Paused',
  lost: 'Disconnected',
};

/** The age of the live data. Only a change of the connection is announced, not every second. */
function Age() {
  const { connection, flow } = useMailroom();
  const now = useNow();
  const ageMs = flow === null ? null : Math.max(0, now - flow.at);
  const isStale = connection === 'lost' || (ageMs !== null && ageMs > STALE_MS);
  const word = connection === 'open' && isStale ? 'Stale' : WORDS[connection];
  return (
    <span class={`age ${isStale ? 'is-stale' : ''}`}>
      <Icon name={isStale ? 'look' : connection === 'open' ? 'ok' : 'busy'} />
      <span role="status">{word}</span>
      {ageMs !== null && <span>{`${roughly(ageMs)} ago`}</span>}
    </span>
  );
}

/** Finds an event by any id, on every screen: the command `why`. */
export function Search() {
  const box = useRef<HTMLInputElement>(null);
  useShortcut((event) => {
    if (event.key !== '/') return;
    event.preventDefault();
    box.current?.focus();
    box.current?.select();
  });
  const submit = (event: Event) => {
    event.preventDefault();
    const id = box.current?.value.trim() ?? '';
    if (id !== '') location.hash = routeTo('event', id);
  };
  return (
    <search>
      <form class="search" onSubmit={submit}>
        <Icon name="search" />
        <input
          ref={box}
          type="search"
          name="id"
          aria-label="Find an event by any id"
          placeholder="Event, order or correlation id"
          autocomplete="off"
          spellcheck={false}
          aria-keyshortcuts="/"
        />
        <kbd>/</kbd>
      </form>
    </search>
  );
}

/** The keys of the page, in a dialog that `?` opens. A digit opens the screen at that place of the navigation. */
export function Shortcuts({ screens }: { readonly screens: readonly Screen[] }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useShortcut(({ key }) => {
    if (key === '?') dialog.current?.showModal();
    const screen = /^[1-9]$/.test(key) ? screens[Number(key) - 1] : undefined;
    if (screen !== undefined) location.hash = routeTo(screen.name);
  });
  const keys = [
    ['/', 'Find an event by any id'],
    ...screens.map(({ title }, index) => [index + 1, title] as const),
    ['?', 'This list'],
    ['Esc', 'Close a dialog'],
  ] as const;
  return (
    <footer class="foot">
      <button type="button" class="quiet" onClick={() => dialog.current?.showModal()}>
        Keyboard shortcuts <kbd>?</kbd>
      </button>
      <dialog ref={dialog} aria-labelledby="shortcuts-title">
        <h2 id="shortcuts-title">Keyboard shortcuts</h2>
        <dl class="keys">
          {keys.map(([key, meaning]) => (
            <Fact key={key} title={<kbd>{key}</kbd>}>
              {meaning}
            </Fact>
          ))}
        </dl>
        <form method="dialog" class="row spread">
          <label class="row">
            <input
              type="checkbox"
              defaultChecked
              onChange={({ currentTarget }) => {
                isOn = currentTarget.checked;
              }}
            />
            Use single keys in this tab
          </label>
          <button type="submit">Close</button>
        </form>
      </dialog>
    </footer>
  );
}

/** The single keys of this tab are on: spoken words, too, arrive as keys. */
let isOn = true;

/** Receives the keys of the page: none while they are off, or if a key belongs to a field, an open dialog or the browser. */
function useShortcut(receive: (event: KeyboardEvent) => void): void {
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      const { ctrlKey, metaKey, altKey, target } = event;
      if (!isOn || ctrlKey || metaKey || altKey || document.querySelector('dialog[open]') !== null) return;
      if (!(target instanceof HTMLElement && takesText(target))) receive(event);
    };
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  });
}

/** The types of an input without text; the browser reads a type that it does not know as `text`. */
const TEXTLESS_TYPES = /^(button|checkbox|color|file|hidden|image|radio|range|reset|submit)$/;

/**
 * True for a visible field of text, or a list, which typed text searches. A field in a dialog keeps the focus until the frame
 * after the dialog is closed.
 */
function takesText(element: HTMLElement): boolean {
  if (!element.checkVisibility()) return false;
  if (element instanceof HTMLInputElement) return !TEXTLESS_TYPES.test(element.type);
  return element.isContentEditable || /^(TEXTAREA|SELECT)$/.test(element.tagName);
}
