import { useEffect, useRef } from 'preact/hooks';
import type { Screen } from './route.ts';
import { routeTo } from './route.ts';

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

let isOn = true;

/** Turns the single keys of this tab on or off: spoken words, too, arrive as keys. */
function turnShortcuts(isWanted: boolean): void {
  isOn = isWanted;
}

/** True for a key of the page; false while they are off, or if the key belongs to a field, an open dialog or the browser. */
export function isShortcut({ ctrlKey, metaKey, altKey, target }: KeyboardEvent): boolean {
  if (!isOn || ctrlKey || metaKey || altKey || document.querySelector('dialog[open]') !== null) return false;
  return !(target instanceof HTMLElement && takesText(target));
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
