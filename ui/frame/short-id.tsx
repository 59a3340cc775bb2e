import { escaped } from '../../cli/frame/escaped.ts';
import { idParts } from './format.ts';

/**
 * A stored id by its end. Its beginning takes no room, and is still there: whoever selects the id copies all of it, which is what the
 * command `why` takes.
 */
export function ShortId({ id }: { readonly id: string }) {
  const whole = escaped(id);
  const [start, end] = idParts(whole);
  return (
    <bdi class="stored short-id" title={whole}>
      {start !== '' && <span class="id-start">{start}</span>}
      {end}
    </bdi>
  );
}
