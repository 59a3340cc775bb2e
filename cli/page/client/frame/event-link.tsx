import { escaped } from '../../../terminal/escaped.ts';
import { routeTo } from './route.ts';
import { ShortId } from './short-id.tsx';
import { Stored } from './stored.tsx';

/** A link to the Event screen of an id. @param isWhole - the whole id instead of its end */
export function EventLink({ id, isWhole = false }: { readonly id: string; readonly isWhole?: boolean }) {
  return (
    <a class="id" href={routeTo('event', id)} title={escaped(id)} aria-label={`Event ${escaped(id)}`}>
      {isWhole ? <Stored text={id} /> : <ShortId id={id} />}
    </a>
  );
}
