import type { ComponentType } from 'preact';
import type { OpenMailroom } from './mailroom.ts';
import type { Route } from './route.ts';

/** A screen of the page. */
export interface Screen {
  /** Its name in the fragment, e.g. `dead-letters`. */
  readonly name: string;
  readonly title: string;
  /** The number beside its name in the navigation; 0 shows none. @default 0 */
  readonly countOf?: (mailroom: OpenMailroom) => number;
  readonly View: ComponentType<{ readonly route: Route }>;
}
