import { escaped } from '../../../terminal/escaped.ts';
import { idParts } from './format.ts';
import { routeTo } from './route.ts';
import { Stored } from './stored.tsx';

/** A link to the Event screen of an id. @param isWhole - the whole id instead of its end */
export function EventLink({ id, isWhole = false }: { readonly id: string; readonly isWhole?: boolean }) {
  return (
    <a class="id" href={routeTo('event', id)} title={escaped(id)} aria-label={`Event ${escaped(id)}`}>
      {isWhole ? <Stored text={id} /> : <ShortId id={id} />}
    </a>
  );
}

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
