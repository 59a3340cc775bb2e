import type { ButtonHTMLAttributes } from 'preact';
import { useEffect, useId, useState } from 'preact/hooks';
import { escaped } from '../../../terminal/escaped.ts';
import { Icon } from './state.tsx';

interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'disabled' | 'onClick'> {
  /** It does nothing, e.g. while its work is under way. @default false */
  readonly isDisabled?: boolean;
  readonly onClick?: () => void;
}

/**
 * A button that keeps the focus while it does nothing. With the attribute `disabled` it would lose the focus, and a keyboard would
 * start again at the top of the page.
 */
export function Button({ isDisabled = false, onClick, type = 'button', ...rest }: ButtonProps) {
  return (
    <button
      {...rest}
      type={type}
      aria-disabled={isDisabled ? 'true' : undefined}
      onClick={isDisabled ? undefined : onClick}
    />
  );
}

/** Returns the first entries of a list, or all of them, and the button that shows the rest; no button if there is no rest. */
export function useFirst<Entry>(all: readonly Entry[], most: number) {
  const [isWhole, setWhole] = useState(false);
  const more = all.length > most && (
    <p class="more">
      <button type="button" class="quiet" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
        {isWhole ? 'Show fewer' : `Show all ${all.length}`}
      </button>
    </p>
  );
  return { shown: isWhole ? all : all.slice(0, most), more };
}

interface ChoiceProps<Value extends string> {
  readonly label: string;
  readonly value: Value;
  /** Each value with its words. */
  readonly options: readonly (readonly [Value, string])[];
  readonly onChange: (value: Value) => void;
}

/** A labelled list to choose one value from. */
export function Choice<Value extends string>({ label, value, options, onChange }: ChoiceProps<Value>) {
  const id = useId();
  return (
    <span class="choice">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={({ currentTarget }) => onChange(currentTarget.value as Value)}>
        {options.map(([option, words]) => (
          <option key={option} value={option}>
            {words}
          </option>
        ))}
      </select>
    </span>
  );
}

/** The time for which the button says `Copied`. */
const SAID_MS = 2_000;

/** A complete command to paste into a terminal, with a button that copies it. */
export function Command({ line }: { readonly line: string }) {
  const [said, setSaid] = useState('');
  useEffect(() => {
    if (said === '') return;
    const timer = setTimeout(() => setSaid(''), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  // A control character, such as Ctrl-C, in a stored text would act on the terminal into which the command is pasted.
  const shown = escaped(line);
  const copy = () =>
    navigator.clipboard.writeText(shown).then(
      () => setSaid('Copied'),
      () => setSaid('Not copied: select the text'),
    );
  return (
    <span class="command">
      <code>
        {piecesOf(shown).map((piece, index) => (
          <span key={index}>{piece}</span>
        ))}
      </code>
      <button type="button" class="quiet" onClick={copy} aria-label={`Copy the command ${shown}`}>
        <Icon name="copy" />
        {said || 'Copy'}
      </button>
      <span role="status" class="unseen">
        {said !== '' && said}
      </span>
    </span>
  );
}

/** The words of a command, between which a line may end: an option stays with its value. */
function piecesOf(line: string): readonly string[] {
  return line.match(/--?[a-z][\w-]*(?: [^-\s]\S*)?|\S+|\s/g) ?? [];
}

/** The command that does what the screen did. */
export function SameCommand({ line }: { readonly line: string }) {
  return (
    <details class="same-command">
      <summary>In a terminal</summary>
      <Command line={line} />
    </details>
  );
}
