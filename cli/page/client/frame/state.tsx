import type { ComponentChildren } from 'preact';
import { Icon } from './icon.tsx';
import type { StateName } from './state-name.ts';

/**
 * A state: a symbol, a word and a colour, so that no information is in the colour alone.
 *
 * @example
 * ```tsx
 * <State is="broken">rejected</State>
 * ```
 */
export function State({ is, children }: { readonly is: StateName; readonly children: ComponentChildren }) {
  return (
    <span class={`state is-${is}`}>
      <Icon name={is} />
      <span>{children}</span>
    </span>
  );
}
