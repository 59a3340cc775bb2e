import { Stored } from '../frame/stored.tsx';

/** The name of a consumer in a table: not broken while the window is wide. */
export function Name({ text }: { readonly text: string }) {
  return (
    <span class="name">
      <Stored text={text} />
    </span>
  );
}
