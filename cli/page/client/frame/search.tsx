import { useEffect, useRef } from 'preact/hooks';
import { Icon } from './icon.tsx';
import { routeTo } from './route.ts';
import { isShortcut } from './shortcuts.tsx';

/** Finds an event by any id, on every screen: the command `why`. */
export function Search() {
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      if (event.key !== '/' || !isShortcut(event)) return;
      event.preventDefault();
      box.current?.focus();
      box.current?.select();
    };
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  }, []);
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
        <button type="submit">Find</button>
      </form>
    </search>
  );
}
