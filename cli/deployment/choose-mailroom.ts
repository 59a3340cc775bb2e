import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { type Directory, directoryPath } from '../../lambdas/runtime/operations/directory.ts';
import {
  type BrokenDirectory,
  type DirectoryReading,
  refuseFaults,
} from '../../lambdas/runtime/operations/directory-reader.ts';
import { shell } from '../terminal/shell.ts';
import type { GlobalOptions } from './target.ts';

/** The inputs of the choice, in order of precedence: options, `MAILROOM_STACK`, the CDK app in this folder. */
interface Choice extends Pick<GlobalOptions, 'stage' | 'stack'> {
  /** The variable `MAILROOM_STACK`; ignored if an option is given. */
  readonly variable: string | undefined;
  /** The stacks of the CDK app in this folder. */
  readonly appStacks: readonly string[];
  /** The region and the endpoint, for errors. */
  readonly where: string;
}

/** The chosen Mailroom. */
interface Chosen {
  readonly directory: Directory;
  /** The stack that printed commands must name, because no option of this run does. */
  readonly unnamedStack?: string | undefined;
  /** True if only the CDK app in this folder decided between several. */
  readonly byApp: boolean;
}

/**
 * Chooses a Mailroom. A stage is a word of its stack's name: `dev` means `mailroom-dev`. A Mailroom whose entry cannot be used does not
 * prevent the choice of another by its stack, but is one of several as long as no stack is named. Instead of a stack, `--stack` takes the path
 * of a directory, `/mailroom/<table>`, in which no other team's entry can be.
 *
 * @throws `NOTHING_DEPLOYED`, `NO_SUCH_STAGE`, `WHICH_MAILROOM`, each lists the choices; `BAD_DIRECTORY` if an entry of the chosen one,
 * or of the only one that can be meant, cannot be used
 *
 * @example
 * ```ts
 * const { directory } = chooseMailroom(await readAllDirectories(ssm), { stage: 'dev', variable: undefined, appStacks: [], where: 'eu-west-1' });
 * ```
 */
export function chooseMailroom({ directories, broken }: DirectoryReading, choice: Choice): Chosen {
  const { stage, where, appStacks } = choice;
  const variable =
    choice.stack === undefined && stage === undefined ? choice.variable || undefined : undefined;
  const stack = choice.stack ?? variable;
  if (directories.length + broken.length === 0) {
    throw new MailroomError(
      'NOTHING_DEPLOYED',
      `No Mailroom is deployed in ${where}. Deploy one with cdk deploy, or look elsewhere ` +
        'with --region, --profile or --endpoint.',
    );
  }
  const isMeant = (table: string, name: string) =>
    (stack === undefined || stack === (stack.startsWith('/') ? directoryPath(table) : name)) &&
    (stage === undefined || name.toLowerCase().split('-').includes(stage.toLowerCase()));
  const meant = directories.filter(({ mailroom }) => isMeant(mailroom.table, mailroom.stack));
  const perhaps = broken.filter(
    ({ table, hints }) =>
      isMeant(table, hints.stack ?? '') || (hints.stack === undefined && !stack?.startsWith('/')),
  );
  const ofApp = meant.filter(({ mailroom }) => appStacks.includes(mailroom.stack));
  // What a broken entry says of its stack is not proven, so it never takes the place of a Mailroom that a stack names.
  const several = stack === undefined ? [...meant, ...perhaps] : meant;
  const byApp = several.length > 1 && ofApp.length === 1;
  const [only, ...others] = byApp ? ofApp : meant;
  for (const { fault } of only === undefined ? perhaps : []) throw new MailroomError('BAD_DIRECTORY', fault);
  if (only === undefined) throw noSuchMailroom(directories, { ...choice, variable });
  if (others.length > 0 || (!byApp && several.length > 1)) throw whichMailroom(directories, several, where);
  refuseFaults(only);
  const unnamed = byApp || variable !== undefined;
  return { directory: only, byApp, unnamedStack: unnamed ? choiceOf(only, directories) : undefined };
}

function noSuchMailroom(directories: readonly Directory[], choice: Choice): MailroomError {
  const { stack, stage, variable, where } = choice;
  const byOption = stack === undefined ? `stage "${stage}"` : `stack "${stack}"`;
  const asked = variable === undefined ? byOption : `the stack "${variable}" of MAILROOM_STACK`;
  return new MailroomError(
    'NO_SUCH_STAGE',
    `No Mailroom in ${where} matches ${asked}. Stacks with a Mailroom: ${listed(directories)}.`,
  );
}

/**
 * The name by which `--stack` chooses a Mailroom: its stack's, or the path of its directory if other entries name the same stack. Any
 * team can name the stack of another in its entry, but the path is unique.
 */
export function choiceOf({ mailroom }: Directory, directories: readonly Directory[]): string {
  const { stack, table } = mailroom;
  return directories.some(({ mailroom: other }) => other.stack === stack && other.table !== table)
    ? directoryPath(table)
    : stack;
}

function whichMailroom(
  directories: readonly Directory[],
  several: readonly (Directory | BrokenDirectory)[],
  where: string,
): MailroomError {
  const names = several.map((one) =>
    'mailroom' in one ? choiceOf(one, directories) : `one whose entry ${one.parameter} cannot be used`,
  );
  const [example = ''] = several.flatMap((one) => ('mailroom' in one ? [choiceOf(one, directories)] : []));
  return new MailroomError(
    'WHICH_MAILROOM',
    `There are several Mailrooms in ${where}: ${names.join(', ')}. Choose one with --stack or --stage, run the command in the ` +
      `folder of its synthesized CDK app, or set it for this shell: \`${shell`export MAILROOM_STACK=${example}`}\`.`,
  );
}

function listed(several: readonly (Directory | BrokenDirectory)[]): string {
  return several
    .map((one) =>
      'mailroom' in one ? one.mailroom.stack : `one whose entry ${one.parameter} cannot be used`,
    )
    .join(', ');
}
