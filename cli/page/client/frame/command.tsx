import { useEffect, useState } from 'preact/hooks';
import { escaped } from '../../../terminal/escaped.ts';
import { Icon } from './icon.tsx';

/** The time for which the button says `Copied`. */
const SAID_MS = 2_000;

/**
 * A command to paste into a terminal, with a button that copies it.
 *
 * @param line - the complete command
 *
 * @example
 * ```tsx
 * <Command line="npx cdk-mailroom sweep --since 1h --stage dev" />
 * ```
 */
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
        {shown.split(/( )/).map((word, index) => (
          <span key={index}>{word}</span>
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
