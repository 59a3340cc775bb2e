import { readSourceConsumers } from '../../../lambdas/runtime/operations/source-consumers.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { consumerNamed } from '../../deployment/source-consumer.ts';
import type { ExitCode } from '../../terminal/io.ts';
import { refusalOf, withoutCredentials } from '../../terminal/report-error.ts';
import type { Report, Terminal } from '../../terminal/terminal.ts';

/** Why a request or a command was refused, or failed. */
export interface Refusal {
  /** A code of the command or of its page, or one of AWS. */
  readonly code: string;
  /** The problem and its remedy. */
  readonly message: string;
  /** The address of the code's explanation; absent for a code of AWS. */
  readonly help?: string | undefined;
}

/** The result of a command, and what it would have printed on stderr. */
interface QuietResult<Document> {
  readonly exitCode: ExitCode;
  /** The document of `--json`; `null` if the command failed or was refused. */
  readonly document: Document | null;
  /** Why it failed or was refused; `null` otherwise. */
  readonly error: Refusal | null;
  /** The lines that it said, without credentials that AWS quotes. */
  readonly notes: readonly string[];
}

interface QuietOptions {
  /** Stops the command, as Ctrl-C does. @default never */
  readonly signal?: AbortSignal;
  /** Receives each line of progress, and what it says. @default it is dropped */
  readonly onProgress?: Terminal['progress'];
}

/**
 * Runs a command on an open deployment without a terminal: the page reads and changes with the code of the commands. It never
 * rejects.
 *
 * @example
 * ```ts
 * const { document } = await runQuietly(deployment, (quiet) => why(quiet, { id: eventId }));
 * ```
 */
export async function runQuietly<Document>(
  deployment: Deployment,
  run: (deployment: Deployment) => Promise<Report<Document>>,
  { signal = new AbortController().signal, onProgress = () => {} }: QuietOptions = {},
): Promise<QuietResult<Document>> {
  const notes: string[] = [];
  const terminal = {
    signal,
    json: true,
    print: async () => {},
    say: (line: string) => void notes.push(withoutCredentials(line)),
    progress: onProgress,
  };
  try {
    const { json, exitCode } = await run({ ...(await withCurrentSources(deployment)), terminal });
    return { exitCode, document: json, error: null, notes };
  } catch (error) {
    const { code, message, help, exit } = refusalOf(error, signal.aborted);
    return { exitCode: exit, document: null, error: { code, message, help }, notes };
  }
}

/** The deployment with the consumers of other sources that are entered now: they enter themselves while a page is open. */
async function withCurrentSources(deployment: Deployment): Promise<Deployment> {
  const { directory, table, clock } = deployment;
  const { sourceConsumers: known } = directory;
  const sourceConsumers = await readSourceConsumers(table, directory, clock.now()).catch(() => known);
  const current = { ...directory, sourceConsumers };
  return { ...deployment, directory: current, consumer: (name) => consumerNamed(current, name) };
}
