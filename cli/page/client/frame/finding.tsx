import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { Command } from './controls.tsx';
import { firstLine, many, type StateName } from './format.ts';
import { Icon } from './state.tsx';
import { Prose, Stored } from './stored.tsx';

interface FindingProps {
  readonly is: StateName;
  /** The finding in one or more sentences. */
  readonly text: string;
  /** The commands to run, in order. */
  readonly commands: readonly string[];
  /** A few words about it, e.g. `acknowledged`. @default none */
  readonly note?: string | undefined;
  /** More about it, shown with the commands. */
  readonly children?: ComponentChildren;
}

/** A finding as one line of a list, with a button that shows all of its text and its commands. */
export function Finding({ is, text, commands, note, children }: FindingProps) {
  const ids = { text: useId(), more: useId() };
  const [isOpen, setOpen] = useState(false);
  const line = firstLine(text);
  const hasMore = commands.length > 0 || children !== undefined || line !== text;
  return (
    <li class={`finding is-${is}`}>
      <Icon name={is} />
      <p id={ids.text}>
        <Prose text={isOpen ? text : line} />
        {note !== undefined && (
          <span class="quiet-text">
            {' · '}
            <Stored text={note} />
          </span>
        )}
      </p>
      {hasMore && (
        <button
          type="button"
          class="quiet"
          aria-expanded={isOpen}
          aria-controls={ids.more}
          aria-describedby={ids.text}
          onClick={() => setOpen(!isOpen)}
        >
          {commands.length > 0 ? many(commands.length, 'command') : 'Details'}
          <Icon name={isOpen ? 'down' : 'right'} />
        </button>
      )}
      <div id={ids.more} class="finding-more" hidden={!isOpen}>
        {children}
        {commands.map((command) => (
          <Command key={command} line={command} />
        ))}
      </div>
    </li>
  );
}
