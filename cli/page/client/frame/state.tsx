import type { ComponentChildren } from 'preact';
import type { RefusedError } from './api.ts';
import type { StateName } from './format.ts';
import { Stored } from './stored.tsx';

/** A state: a symbol, a word and a color, so that no information is in the color alone. */
export function State({ is, children }: { readonly is: StateName; readonly children: ComponentChildren }) {
  return (
    <span class={`state is-${is}`}>
      <Icon name={is} />
      <span>{children}</span>
    </span>
  );
}

interface NoticeProps {
  readonly is: StateName;
  readonly title: ComponentChildren;
  readonly children?: ComponentChildren;
}

/** Something to know before the rest of the screen: a finding, an error, or the reason why there is nothing to show. */
export function Notice({ is, title, children }: NoticeProps) {
  return (
    <div class={`notice is-${is}`}>
      <Icon name={is} />
      <div>
        <p class="notice-title">{title}</p>
        {children}
      </div>
    </div>
  );
}

/** The refusal of a request, announced at once; nothing without one. */
export function Refused({ error }: { readonly error: RefusedError | null }) {
  if (error === null) return null;
  return (
    <div role="alert">
      <Notice is="broken" title={<Stored text={error.message} />}>
        <p class="quiet-text">
          {error.help === undefined ? (
            error.code
          ) : (
            <a href={error.help} target="_blank" rel="noreferrer">
              {error.code}
            </a>
          )}
        </p>
      </Notice>
    </div>
  );
}

/** The lines that a command wrote to stderr. */
export function Notes({ notes }: { readonly notes: readonly string[] }) {
  return notes.map((note) => (
    <p key={note} class="quiet-text">
      <Stored text={note} />
    </p>
  ));
}

/** Shapes that are drawn rather than written, because no font is shipped with the page. All are 16 units wide. */
const PATHS = {
  ok: 'M3 8.5 6.5 12 13 4.5',
  look: 'M8 3v6.5M8 12.6v.4',
  broken: 'M4 4l8 8M12 4l-8 8',
  busy: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 5v3.2l2.2 1.4',
  idle: 'M4 8h8',
  copy: 'M6 5.5V3h7v8h-2.5M3 5.5h7.5V13H3z',
  search: 'M11 11l3 3M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10z',
  rising: 'M3 11l4-4 2.5 2.5L13 5M9.5 5H13v3.5',
  falling: 'M3 5l4 4 2.5-2.5L13 11M9.5 11H13V7.5',
  level: 'M3 8h10M10 5l3 3-3 3',
  right: 'M6 3.5 10.5 8 6 12.5',
  down: 'M3.5 6 8 10.5 12.5 6',
  next: 'M3 8h10M9 4l4 4-4 4',
  lock: 'M4 7.5h8V13H4zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5',
  edit: 'M3 13l.7-3L10.5 3.2l2.3 2.3L6 12.3z',
  close: 'M4.5 4.5l7 7M11.5 4.5l-7 7',
  mailroom: 'M2 3.5h12v9H2zM2 4l6 4.5L14 4',
} as const;

/** The name of a shape. */
export type IconName = keyof typeof PATHS;

/** A shape beside a word, which says the same: screen readers skip it. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
