import { CommanderError } from 'commander';
import colors from 'picocolors';
import { errorCode, errorMessage, MailroomError } from '../lambdas/runtime/errors.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import type { Io } from './io.ts';

/** Which of our errors mean that there is nothing of that name; every other one is about how the command was called. */
const NOT_FOUND = new Set([
  'NOTHING_DEPLOYED',
  'NO_SUCH_STAGE',
  'NO_SUCH_CONSUMER',
  'NO_SUCH_EVENT',
  'NO_SUCH_LETTER',
  'NO_SUCH_PLACE',
  'NO_DIRECTORY',
]);

/** What AWS's errors mean, and what to do. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [
    /CredentialsProviderError|TokenProviderError|CredentialsError/,
    'No AWS credentials were found. Name a profile with --profile, log in (aws sso login), or point at a local AWS with --stage local.',
  ],
  [/ExpiredToken|ExpiredTokenException|RequestExpired/, 'The AWS credentials have expired. Log in again.'],
  [
    /AccessDenied|UnauthorizedOperation|NotAuthorized/,
    'These credentials may not do that. docs/cli.md lists what each command needs.',
  ],
  [
    /UnrecognizedClient|InvalidClientTokenId|SignatureDoesNotMatch/,
    'AWS does not know these credentials. Check --profile.',
  ],
  [
    /ECONNREFUSED|ENOTFOUND|ECONNRESET|TimeoutError|NetworkingError/,
    'Nothing answers there. Check --endpoint and --region; a local AWS is started with npm run local.',
  ],
  [/Region is missing/, 'Say which region with --region, AWS_REGION or a profile.'],
  [
    /ResourceNotFoundException|QueueDoesNotExist|ParameterNotFound/,
    'A part of the Mailroom is not there any more, though its entry in the directory is. Deploy its stack again.',
  ],
];

/** Says on stderr what went wrong and what to do. @returns how the command ends */
export function reportError(error: unknown, json: boolean, io: Io): ExitCode {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  const { code, message, exit } = explain(error);
  const line = json ? JSON.stringify({ error: { code, message } }) : `${colors.red(code)}: ${message}`;
  io.err(`${line}\n`);
  return exit;
}

function explain(error: unknown): { code: string; message: string; exit: ExitCode } {
  const code = errorCode(error);
  const message = errorMessage(error);
  if (error instanceof MailroomError)
    return { code, message, exit: NOT_FOUND.has(code) ? EXIT.notFound : EXIT.usage };
  const { name = '' } = error as { name?: string };
  const remedy = REMEDIES.find(([pattern]) => pattern.test(`${code} ${name} ${message}`))?.[1];
  return { code, message: remedy === undefined ? message : `${message}\n${remedy}`, exit: EXIT.aws };
}
