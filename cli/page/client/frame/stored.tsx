import { escaped } from '../../../terminal/escaped.ts';
import { idParts } from './format.ts';
import { routeTo } from './route.ts';

/**
 * A text that others wrote: as a text node with control and format characters escaped, and isolated, so that it cannot reverse or
 * hide what is beside it.
 *
 * @param clip - the most characters that are shown. @default all
 */
export function Stored({ text, clip }: { readonly text: string; readonly clip?: number }) {
  const clean = escaped(text);
  const shown = clip !== undefined && clean.length > clip ? `${clean.slice(0, clip - 1)}…` : clean;
  return (
    <bdi class="stored" {...(shown === clean ? {} : { title: clean })}>
      {shown.split(/(?<=^|[\s(])(--[a-z-]+)/).map((part, index) =>
        index % 2 === 0 ? (
          part
        ) : (
          <span key={index} class="option">
            {part}
          </span>
        ),
      )}
    </bdi>
  );
}

/** Sentences of the command: the commands and names in them, between backticks, are code. */
export function Prose({ text }: { readonly text: string }) {
  const parts = text.split('`');
  // One that is not closed is a part of the text.
  if (parts.length % 2 === 0) return <Stored text={text} />;
  return (
    <>
      {parts.map((part, index) =>
        index % 2 === 0 ? (
          <Stored key={index} text={part} />
        ) : (
          <code key={index}>
            <Stored text={part} />
          </code>
        ),
      )}
    </>
  );
}

/** JSON that others wrote, with indentation. Its strings are escaped by JSON and by {@link Stored}. */
export function StoredJson({ value, label }: { readonly value: unknown; readonly label: string }) {
  const lines = (JSON.stringify(value, null, 2) ?? 'null').split('\n');
  return (
    <section class="code" aria-label={label}>
      <pre>{lines.map((line) => `${escaped(line)}\n`)}</pre>
    </section>
  );
}

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

/** A name in a table: not broken while the window is wide. @param clip - as of {@link Stored} */
export function Name(props: Parameters<typeof Stored>[0]) {
  return (
    <span class="name">
      <Stored {...props} />
    </span>
  );
}
