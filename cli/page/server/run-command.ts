import type { Deployment } from '../../deployment/deployment.ts';
import type { PlannedVerdicts } from '../../terminal/change.ts';
import { EXIT, type ExitCode, type Io } from '../../terminal/io.ts';
import type { Output } from '../../terminal/output.ts';
import { withoutCredentials } from '../../terminal/report-error.ts';

/** The result of a command: what `--json` prints, and what it wrote to stderr. */
export interface CommandResult {
  readonly exitCode: ExitCode;
  /** The document of `--json`; of a refused or failed command `{ error: { code, message } }`. */
  readonly document: unknown;
  /** The lines on stderr, without credentials that AWS quotes. */
  readonly notes: readonly string[];
}

/** The `mailroom` command: `runMailroom`, which imports the command that serves the page. */
export type RunMailroom = (
  argv: readonly string[],
  io: Io & { open(): Promise<Deployment> },
) => Promise<ExitCode>;

/** Options of {@link runCommand}. */
export interface CommandOptions {
  /** Stops the command, as Ctrl-C does. @default never */
  readonly signal?: AbortSignal;
  /** Receives each line of progress. @default it is dropped */
  readonly onProgress?: (line: string) => void;
  /** The plan that the operator has confirmed: the command changes nothing else. @default its arguments alone decide */
  readonly planned?: PlannedVerdicts | undefined;
  /** The text of its standard input, for an argument `-`. @default none */
  readonly input?: string | undefined;
}

/**
 * Runs a command of `mailroom` on an open deployment: the page reads and changes with the code of the command.
 *
 * @param argv - the command, its arguments and options; `--json` is added
 *
 * @example
 * ```ts
 * const { document } = await runCommand(runMailroom, deployment, ['why', eventId]);
 * ```
 */
export async function runCommand(
  run: RunMailroom,
  deployment: Deployment,
  argv: readonly string[],
  { signal = new AbortController().signal, onProgress = () => {}, planned, input = '' }: CommandOptions = {},
): Promise<CommandResult> {
  const written = { out: '', err: '' };
  const notes: string[] = [];
  const documents: unknown[] = [];
  const output: Output = {
    json: true,
    result: (document) => documents.push(document),
    say: (line) => notes.push(withoutCredentials(line)),
    progress: onProgress,
  };
  const io: Io & { open(): Promise<Deployment> } = {
    env: {},
    outIsTerminal: false,
    errIsTerminal: false,
    outSize: () => undefined,
    out: (text) => {
      written.out += text;
    },
    err: (text) => {
      written.err += text;
    },
    signal,
    exitCode: EXIT.ok,
    input: async () => input,
    open: async () => ({ ...deployment, output, signal, planned }),
  };
  const exitCode = await run([...argv, '--json'], io);
  // An error that ended the command is the last line of stderr.
  return { exitCode, document: documents.at(-1) ?? errorOf(written.err), notes };
}

function errorOf(text: string): unknown {
  return text.trim() === '' ? null : JSON.parse(text);
}
