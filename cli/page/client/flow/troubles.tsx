import { State } from '../frame/state.tsx';
import type { PartTrouble } from './parts.ts';

/** The state of a part in the diagram: its troubles in words, or that it has none. */
export function Troubles({ troubles }: { readonly troubles: readonly PartTrouble[] }) {
  if (troubles.length === 0) return <State is="ok">ok</State>;
  return (
    <span class="troubles">
      {troubles.map(({ is, text }) => (
        <State key={text} is={is}>
          {text}
        </State>
      ))}
    </span>
  );
}
