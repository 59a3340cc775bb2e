import type { ComponentType } from 'preact';
import type { OpenMailroom } from './mailroom.ts';

/** An address on the page: `#/event/01a1fba6?since=6h`. */
export interface Route {
  readonly screen: string;
  /** The subject of the screen, e.g. an event id; empty for a screen without one. */
  readonly argument: string;
  readonly query: Readonly<Record<string, string>>;
}

/** The screen that opens first. */
const FIRST_SCREEN = 'flow';

/**
 * The route in a fragment. An unknown or malformed one leads to the first screen.
 *
 * @example
 * ```ts
 * parseRoute('#/event/42?since=6h'); // { screen: 'event', argument: '42', query: { since: '6h' } }
 * ```
 */
export function parseRoute(fragment: string): Route {
  const [path = '', query = ''] = split(fragment.replace(/^#\/?/, ''), '?');
  const [screen = '', argument = ''] = split(path, '/');
  return {
    screen: screen === '' ? FIRST_SCREEN : decoded(screen),
    argument: decoded(argument),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

/**
 * The fragment of a route, for `href`.
 *
 * @example
 * ```ts
 * routeTo('event', '42', { since: '6h' }); // '#/event/42?since=6h'
 * ```
 */
export function routeTo(
  screen: string,
  argument = '',
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const set = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, value]],
  );
  const parameters = set.length === 0 ? '' : `?${new URLSearchParams(set)}`;
  return `#/${encodeURIComponent(screen)}${argument === '' ? '' : `/${encodeURIComponent(argument)}`}${parameters}`;
}

/** Two parts of a text, before and after the first separator. */
function split(text: string, separator: string): readonly string[] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a fragment typed by hand
  }
}

/** A screen of the page. */
export interface Screen {
  /** Its name in the fragment, e.g. `dead-letters`. */
  readonly name: string;
  readonly title: string;
  /** The number beside its name in the navigation; 0 shows none. @default 0 */
  readonly countOf?: (mailroom: OpenMailroom) => number;
  readonly View: ComponentType<{ readonly route: Route }>;
}

/** The id of the element that holds the screen. */
export const MAIN = 'main';

/** Moves the focus to the screen: for a control that leaves the page with its own click. */
export function focusMain(options: FocusOptions = {}): void {
  document.getElementById(MAIN)?.focus(options);
}

/** False if nothing has the focus, e.g. because the element that had it is gone. */
export function hasFocus(): boolean {
  return document.activeElement !== null && document.activeElement !== document.body;
}
