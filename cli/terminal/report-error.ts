import { type AwsFault, awsFault } from '../../lambdas/runtime/base/aws-errors.ts';
import { errorHelp } from '../../lambdas/runtime/base/documentation.ts';
import type { MailroomErrorCode } from '../../lambdas/runtime/base/error-codes.ts';
import { errorCode, errorMessage, isMailroomError } from '../../lambdas/runtime/base/errors.ts';
import { escaped, jsonLine } from './escaped.ts';
import { EXIT, type ExitCode, type Io } from './io.ts';
import { paint, plain } from './paint.ts';
import { prose } from './prose.ts';

/** The codes that mean not found; every other MailroomError means wrong usage. */
const NOT_FOUND = new Set([
  'NOTHING_DEPLOYED',
  'NO_SUCH_STAGE',
  'NO_SUCH_CONSUMER',
  'NO_SUCH_EVENT',
  'NO_SUCH_DEAD_LETTER',
  'NO_SUCH_SOURCE',
  'NO_DIRECTORY',
]);

/** The codes that mean that a database denied the request or did not respond. */
const UNANSWERED = new Set(['UNREACHABLE', 'BAD_CREDENTIALS', 'ACCESS_DENIED']);

const BAD_CREDENTIALS = 'AWS does not accept these credentials. Check --profile.';

/** The code that is reported for a fault of AWS, and the remedy. */
const REMEDIES: Partial<Record<AwsFault, readonly [MailroomErrorCode, string]>> = {
  'no-credentials': [
    'NO_CREDENTIALS',
    'No AWS credentials were found. Choose a profile with --profile, log in (aws sso login), or use a local AWS with --stage local.',
  ],
  expired: ['CREDENTIALS_EXPIRED', 'The AWS credentials have expired. Log in again.'],
  denied: [
    'ACCESS_DENIED',
    'These credentials lack a permission. docs/cli.md#permissions lists what each command needs.',
  ],
  'unknown-identity': ['BAD_CREDENTIALS', BAD_CREDENTIALS],
  signature: ['BAD_CREDENTIALS', BAD_CREDENTIALS],
  unreachable: [
    'UNREACHABLE',
    'The endpoint does not respond. Check --endpoint and --region. To start a local AWS: npx cdk-mailroom local.',
  ],
  missing: [
    'PART_MISSING',
    'A resource of the Mailroom was deleted, but the directory still lists it. `npx cdk-mailroom status` names what is ' +
      'missing. Deploy its stack again with --revert-drift.',
  ],
};

/** The message of the SDK's error for a missing region, which has no other sign. */
const NO_REGION = 'Region is missing';

/** The code and the remedy for an error of AWS; `undefined` for any other. */
function remedyOf(error: unknown): readonly [MailroomErrorCode, string] | undefined {
  if (errorMessage(error) === NO_REGION)
    return ['NO_REGION', 'Set the region with --region, AWS_REGION or a profile.'];
  const fault = codesOf(error)
    .map(awsFault)
    .find((found) => found !== undefined);
  return fault && REMEDIES[fault];
}

/** The name of the error of a function that the command invoked. It is not a MailroomError, whose exit code means wrong usage. */
export const FUNCTION_FAILED = 'FUNCTION_FAILED' satisfies MailroomErrorCode;

/** Prints an error, its remedy and the link to its explanation on stderr, as text or as one JSON document. @returns the exit code */
export function reportError(error: unknown, json: boolean, io: Io): ExitCode {
  if (isCommanderError(error)) {
    if (error.exitCode === 0) return EXIT.ok;
    // As text, commander has already printed the error and the help.
    if (json)
      io.err(
        `${errorJson({ code: 'BAD_ARGUMENT', message: complaint(error), help: errorHelp('BAD_ARGUMENT') })}\n`,
      );
    return EXIT.usage;
  }
  const { code, message, remedy, help, exit } = io.signal.aborted ? STOPPED : explain(error);
  const refusal = refusalOf(error, io.signal.aborted);
  // The message may quote AWS or a row, so it is escaped as one paragraph; our remedy and the link begin the next lines.
  const line = json
    ? errorJson(refusal)
    : plain(
        [`${paint.red(escaped(code))}: ${escaped(message)}`, remedy, help && paint.dim(help)]
          .flatMap((text) => (text ? [prose(text)] : []))
          .join('\n'),
        io,
        io.errIsTerminal,
      );
  io.err(`${io.errIsTerminal ? '\r\u001b[K' : ''}${line}\n`);
  return exit;
}

/** An error as a program receives it: the remedy is the second line of the message. @param isStopped - Ctrl-C ended the run */
export function refusalOf(error: unknown, isStopped: boolean): Omit<ShownError, 'remedy'> {
  const { message, remedy, ...rest } = isStopped ? STOPPED : explain(error);
  return { ...rest, message: remedy === undefined ? message : `${message}\n${remedy}` };
}

function errorJson({ code, message, help, retryAfterMs }: Omit<ShownError, 'remedy' | 'exit'>): string {
  return jsonLine({ error: { code, message, help, retryAfterMs } });
}

/** An error of commander, which only the commands load. */
interface CommandLineError extends Error {
  readonly code: string;
  readonly exitCode: number;
}

function isCommanderError(error: unknown): error is CommandLineError {
  return error instanceof Error && error.name === 'CommanderError';
}

function complaint(error: CommandLineError): string {
  return error.code === 'commander.help'
    ? 'No command was given. mailroom --help lists them.'
    : error.message.replace(/^error: /, '');
}

/** The parts of a reported error. */
interface ShownError {
  readonly code: string;
  readonly message: string;
  /** A sentence; absent if none is known. */
  readonly remedy?: string;
  /** The address of the code's explanation; absent for a code of AWS. */
  readonly help?: string | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly exit: ExitCode;
}

const STOPPED: ShownError = { code: 'STOPPED', message: 'Stopped.', exit: EXIT.stopped };

/**
 * Explains an error as the command reports it.
 *
 * @example
 * ```ts
 * const { message, remedy } = explain(error);
 * ```
 */
export function explain(error: unknown): ShownError {
  const code = errorCode(error);
  const message = withoutCredentials(describe(error));
  if (isMailroomError(error)) {
    const { retryAfterMs, help } = error;
    const denied = UNANSWERED.has(code) ? EXIT.aws : EXIT.usage;
    return { code, message, help, retryAfterMs, exit: NOT_FOUND.has(code) ? EXIT.notFound : denied };
  }
  const { name = '' } = error as { name?: string };
  const [ours, remedy = ''] = remedyOf(error) ?? [];
  if (ours === undefined && isDefect(error)) {
    const remedy =
      'This is an internal error of the mailroom command. Report it with the output of --version.';
    return {
      code: 'DEFECT',
      message: `${name}: ${message}`,
      remedy,
      help: errorHelp('DEFECT'),
      exit: EXIT.defect,
    };
  }
  if (ours !== undefined) return { code: ours, message, remedy, help: errorHelp(ours), exit: EXIT.aws };
  return { code, message, help: code === FUNCTION_FAILED ? errorHelp(code) : undefined, exit: EXIT.aws };
}

/** The names by which an error is known: never its words, which may quote the error of another program. */
function codesOf(error: unknown): string[] {
  const { name, errors = [] } = Object(error) as {
    readonly name?: unknown;
    readonly errors?: readonly unknown[];
  };
  const own = [errorCode(error), String(name)];
  return error instanceof AggregateError ? [...own, ...errors.map(errorCode)] : own;
}

/** True for errors that JavaScript threw in our code. Those of the AWS SDK carry the request or the response. */
function isDefect(error: unknown): boolean {
  const native = [TypeError, RangeError, ReferenceError, SyntaxError].some((kind) => error instanceof kind);
  return native && !['$metadata', '$response', 'code'].some((member) => member in (error as object));
}

/** The message of an error. Node tries every address of a name and then throws an error with messages only inside. */
function describe(error: unknown): string {
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map((inner) => errorMessage(inner)).join('; ');
  return errorMessage(error);
}

/** The ids of access keys; and the session token, which AWS quotes with the whole request if a signature does not match. */
const CREDENTIALS = /\bA(?:KIA|SIA)[A-Z0-9]{12,}\b|(?<=x-amz-security-token[:=]\s?)[^\s&]+/gi;

/** A message of AWS without credentials. */
export function withoutCredentials(message: string): string {
  return message.replace(CREDENTIALS, '…');
}
