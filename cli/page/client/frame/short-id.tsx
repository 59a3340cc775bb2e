import { escaped } from '../../../terminal/escaped.ts';
import { idParts } from './format.ts';

/**
 * The end of a stored id. Its beginning takes no room but is still there: selecting the id copies all of it, as the command `why`
 * needs it.
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
