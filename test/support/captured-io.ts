import { stripVTControlCharacters } from 'node:util';
import { EXIT, type Io, type TerminalSize } from '../../cli/terminal/io.ts';

/** What a run of the command wrote to its two streams. */
export interface Written {
  out: string;
  err: string;
}

/**
 * A terminal for a run of the `mailroom` command, or a pipe, that captures what is written.
 *
 * @example
 * ```ts
 * const { io, written } = capturedIo();
 * await runMailroom(['--help'], io);
 * expect(written.out).toContain('Usage');
 * ```
 */
export function capturedIo({
  isTerminal = false,
  env = {},
  signal = new AbortController().signal,
  onOut = () => {},
  size,
  input = '',
}: {
  readonly isTerminal?: boolean;
  readonly env?: Io['env'];
  readonly signal?: AbortSignal;
  /** Called with everything that was written to stdout so far. */
  readonly onOut?: (out: string) => void;
  readonly size?: TerminalSize;
  /** All of standard input. */
  readonly input?: string;
} = {}): { readonly io: Io; readonly written: Written } {
  const written = { out: '', err: '' };
  const io: Io = {
    env,
    outIsTerminal: isTerminal,
    errIsTerminal: isTerminal,
    outSize: () => size,
    out: (text) => {
      written.out += text;
      onOut(written.out);
    },
    err: (text) => {
      written.err += text;
    },
    signal,
    input: async () => input,
    exitCode: EXIT.ok,
  };
  return { io, written };
}

/** A text of the command with its line breaks and indents as single spaces, and without colors. */
export function unwrapped(text: string): string {
  return stripVTControlCharacters(text).replace(/\s+/g, ' ');
}
