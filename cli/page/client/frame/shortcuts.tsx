import { useEffect, useRef } from 'preact/hooks';
import { routeTo } from './route.ts';
import type { Screen } from './screen.ts';
import { isShortcut, turnShortcuts } from './shortcut-keys.ts';

/** The keys of the page, in a dialog that `?` opens. A digit opens the screen at that place of the navigation. */
export function Shortcuts({ screens }: { readonly screens: readonly Screen[] }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      if (!isShortcut(event)) return;
      if (event.key === '?') dialog.current?.showModal();
      const screen = /^[1-9]$/.test(event.key) ? screens[Number(event.key) - 1] : undefined;
      if (screen !== undefined) location.hash = routeTo(screen.name);
    };
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  }, [screens]);
  return (
    <footer class="foot">
      <button type="button" class="quiet" onClick={() => dialog.current?.showModal()}>
        Keyboard shortcuts <kbd>?</kbd>
      </button>
      <dialog ref={dialog} aria-labelledby="shortcuts-title">
        <h2 id="shortcuts-title">Keyboard shortcuts</h2>
        <dl class="keys">
          <div>
            <dt>
              <kbd>/</kbd>
            </dt>
            <dd>Find an event by any id</dd>
          </div>
          {screens.map(({ name, title }, index) => (
            <div key={name}>
              <dt>
                <kbd>{index + 1}</kbd>
              </dt>
              <dd>{title}</dd>
            </div>
          ))}
          <div>
            <dt>
              <kbd>?</kbd>
            </dt>
            <dd>This list</dd>
          </div>
          <div>
            <dt>
              <kbd>Esc</kbd>
            </dt>
            <dd>Close a dialog</dd>
          </div>
        </dl>
        <form method="dialog" class="row spread">
          <label class="row">
            <input
              type="checkbox"
              defaultChecked
              onChange={({ currentTarget }) => turnShortcuts(currentTarget.checked)}
            />
            Use single keys in this tab
          </label>
          <button type="submit">Close</button>
        </form>
      </dialog>
    </footer>
  );
}
