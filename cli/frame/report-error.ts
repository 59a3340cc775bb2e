import { CommanderError } from 'commander';
import { errorCode, errorMessage, isMailroomError } from '../../lambdas/runtime/errors.ts';
import { escaped, jsonLine } from './escaped.ts';
import { EXIT, type ExitCode, type Io } from './io.ts';
import { paint, plain } from './paint.ts';

/** Which of our errors mean that there is nothing of that name; every other one is about how the command was called. */
const NOT_FOUND = new Set([
  'NOTHING_DEPLOYED',
  'NO_SUCH_STAGE',
  'NO_SUCH_CONSUMER',
  'NO_SUCH_EVENT',
  'NO_SUCH_DEAD_LETTER',
  'NO_SUCH_SOURCE',
  'NO_DIRECTORY',
]);

/** What AWS's errors mean: our code for it, how it is known, and what to do. */
const REMEDIES: readonly (readonly [string, RegExp, string])[] = [
  [
    'NO_CREDENTIALS',
    /CredentialsProviderError|TokenProviderError|CredentialsError/,
    'No AWS credentials were found. Name a profile with --profile, log in (aws sso login), or point at a local AWS with --stage local.',
  ],
  [
    'CREDENTIALS_EXPIRED',
    /ExpiredToken|ExpiredTokenException|RequestExpired/,
    'The AWS credentials have expired. Log in again.',
  ],
  [
    'ACCESS_DENIED',
    /AccessDenied|UnauthorizedOperation|NotAuthorized/,
    'These credentials may not do that. docs/cli.md lists what each command needs.',
  ],
  [
    'BAD_CREDENTIALS',
    /UnrecognizedClient|InvalidClientTokenId|SignatureDoesNotMatch/,
    'AWS does not know these credentials. Check --profile.',
  ],
  [
    'UNREACHABLE',
    /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ECONNRESET|EHOSTUNREACH|TimeoutError|NetworkingError/,
    'Nothing answers there. Check --endpoint and --region; a local AWS is started with npm run local.',
  ],
  ['NO_REGION', /Region is missing/, 'Say which region with --region, AWS_REGION or a profile.'],
  [
    'PART_MISSING',
    /ResourceNotFoundException|QueueDoesNotExist|ParameterNotFound/,
    'A part of the Mailroom is not there any more, though its entry in the directory is; mailroom status names a queue that is gone. ' +
      'To make it again: npx cdk deploy <stack> --revert-drift.',
  ],
];

/** Says on stderr what went wrong and what to do: a line for people, or one JSON document. @returns how the command ends */
export function reportError(error: unknown, json: boolean, io: Io): ExitCode {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return EXIT.ok;
    // For people, commander has printed its complaint and the help already.
    if (json) io.err(`${errorJson('BAD_ARGUMENT', complaint(error))}\n`);
    return EXIT.usage;
  }
  const { code, message, remedy, retryAfterMs, exit } = explain(error, io);
  // What AWS or a row says stays one line; the remedy is ours and begins the next one.
  const said = [message, ...(remedy === undefined ? [] : [remedy])];
  const line = json
    ? errorJson(code, said.join('\n'), retryAfterMs)
    : plain(`${paint.red(escaped(code))}: ${said.map(escaped).join('\n')}`, io, io.errIsTerminal);
  io.err(`${io.errIsTerminal ? '\r\u001b[K' : ''}${line}\n`);
  return exit;
}

function errorJson(code: string, message: string, retryAfterMs?: number): string {
  return jsonLine({ error: { code, message, retryAfterMs } });
}

function complaint(error: CommanderError): string {
  return error.code === 'commander.help'
    ? 'Say which command; mailroom --help lists them.'
    : error.message.replace(/^error: /, '');
}

/** An error as it is shown. */
interface ShownError {
  readonly code: string;
  readonly message: string;
  readonly remedy?: string;
  readonly retryAfterMs?: number | undefined;
  readonly exit: ExitCode;
}

function explain(error: unknown, io: Io): ShownError {
  const code = errorCode(error);
  if (io.signal.aborted) return { code: 'STOPPED', message: 'Stopped.', exit: EXIT.stopped };
  const message = describe(error);
  if (isMailroomError(error)) {
    const { retryAfterMs } = error;
    return { code, message, retryAfterMs, exit: NOT_FOUND.has(code) ? EXIT.notFound : EXIT.usage };
  }
  const { name = '' } = error as { name?: string };
  const [ours, , remedy = ''] =
    REMEDIES.find(([, pattern]) => pattern.test(`${code} ${name} ${message}`)) ?? [];
  if (ours === undefined && isDefect(error)) {
    const remedy =
      'This is a defect of the mailroom command, and nothing that AWS said. Report it, with the output of --version.';
    return { code: 'DEFECT', message: `${name}: ${message}`, remedy, exit: EXIT.defect };
  }
  if (ours === undefined) return { code, message, exit: EXIT.aws };
  return { code: ours, message, remedy, exit: EXIT.aws };
}

/** Whether JavaScript itself threw it in our code: what the AWS SDK throws names the request or its answer. */
function isDefect(error: unknown): boolean {
  const native = [TypeError, RangeError, ReferenceError, SyntaxError].some((kind) => error instanceof kind);
  return native && !['$metadata', '$response', 'code'].some((member) => member in (error as object));
}

/** Node tries every address of a name, and its error then has no message of its own: the errors inside have. */
function describe(error: unknown): string {
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map((inner) => errorMessage(inner)).join('; ');
  return errorMessage(error);
}
