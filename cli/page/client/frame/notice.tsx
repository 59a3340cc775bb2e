import type { ComponentChildren } from 'preact';
import type { RefusedError } from './api.ts';
import { Icon } from './icon.tsx';
import type { StateName } from './state-name.ts';
import { Stored } from './stored.tsx';

interface NoticeProps {
  readonly is: StateName;
  readonly title: ComponentChildren;
  readonly children?: ComponentChildren;
}

/**
 * Something to know before the rest of the screen: a finding, an error, or the reason why there is nothing to show.
 *
 * @example
 * ```tsx
 * <Notice is="look" title="1,000 of 10,000 dead letters were read" />
 * ```
 */
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

/** A refused request: its message and code, announced at once. */
export function Refused({ error }: { readonly error: RefusedError }) {
  return (
    <div role="alert">
      <Notice is="broken" title={<Stored text={error.message} />}>
        <p class="quiet-text">{error.code}</p>
      </Notice>
    </div>
  );
}
