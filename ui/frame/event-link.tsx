import { escaped } from '../../cli/frame/escaped.ts';
import { shortId } from './format.ts';
import { routeTo } from './route.ts';
import { Stored } from './stored.tsx';

/** A link to the Event screen of an id. @param isWhole - the whole id instead of its first 8 characters */
export function EventLink({ id, isWhole = false }: { readonly id: string; readonly isWhole?: boolean }) {
  return (
    <a class="id" href={routeTo('event', id)} title={escaped(id)} aria-label={`Event ${escaped(id)}`}>
      <Stored text={isWhole ? id : shortId(id)} />
    </a>
  );
}
