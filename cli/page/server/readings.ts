import pLimit from 'p-limit';
import { errorMessage, MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { run } from '../../changes/change.ts';
import { discard } from '../../changes/discard/discard.ts';
import { redrive } from '../../changes/redrive/redrive.ts';
import { auditOrRepair } from '../../changes/repair/repair.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { listDeadLetters } from '../../reports/dead-letters/list-dead-letters.ts';
import { showDeadLetter } from '../../reports/dead-letters/show-dead-letter.ts';
import { doctor } from '../../reports/findings/doctor.ts';
import { listMessages } from '../../reports/messages/messages-report.ts';
import { listOperations } from '../../reports/operations/list-operations.ts';
import { why } from '../../reports/why/why.ts';
import { countArgument, durationArgument } from '../../terminal/arguments.ts';
import { shell } from '../../terminal/shell.ts';
import type { Report } from '../../terminal/terminal.ts';
import { type Refusal, runQuietly } from './quiet-run.ts';

/** Readings that run at the same time. More would only throttle each other: Lambda allows an account few reads. */
const AT_ONCE = 4;

/** The longest parameter. Ids and names are shorter. */
const PARAMETER_MAX = 500;

/** A parameter of a reading: as words of the command that does the same, and as a value for its function. */
interface Parameter<Value> {
  readonly required?: true;
  /** Its values. @default any text that cannot be taken for an option */
  readonly values?: readonly string[];
  words(value: string): string[];
  /** @throws `InvalidArgumentError` */
  read(value: string): Value;
}

const text = (value: string) => value;
const argument: Parameter<string> = { words: (value) => [value], read: text };
const required: Parameter<string> & { readonly required: true } = { ...argument, required: true };
const flag = (name: string): Parameter<true> => ({
  values: ['1'],
  words: () => [`--${name}`],
  read: () => true,
});
const option = <Value>(name: string, read: (value: string) => Value): Parameter<Value> => ({
  words: (value) => [`--${name}`, value],
  read,
});
const since = option('since', durationArgument);
const limit = option('limit', countArgument);
const cause = option('cause', text);
const payload = flag('payload');
const oneOf = <const Name extends string>(
  values: readonly Name[],
  words: Parameter<Name>['words'],
): Parameter<Name> => ({ values, words, read: (value) => value as Name });

type Parameters = Readonly<Record<string, Parameter<unknown>>>;

/** The values of parameters; those that are not required may be absent. */
type Values<Of extends Parameters> = {
  readonly [Key in RequiredKey<Of>]: ReturnType<Of[Key]['read']>;
} & {
  readonly [Key in Exclude<keyof Of, RequiredKey<Of>>]?: ReturnType<Of[Key]['read']>;
};

type RequiredKey<Of extends Parameters> = {
  [Key in keyof Of]: Of[Key] extends { readonly required: true } ? Key : never;
}[keyof Of];

/** A reading: its command, its parameters in the order of the command's words, and the command's function. */
interface ReadingOf<Of extends Parameters, Document> {
  readonly command: readonly string[];
  readonly parameters: Of;
  run(deployment: Deployment, values: Values<Of>): Promise<Report<Document>>;
}

const reading = <Of extends Parameters, Document>(of: ReadingOf<Of, Document>) => of;

/** The readings of the page. */
const READINGS = {
  why: reading({ command: ['why'], parameters: { id: required, since, payload }, run: why }),
  messages: reading({
    command: ['messages', 'list'],
    parameters: {
      state: oneOf(['failed', 'rejected', 'waiting'], (value) => [`--${value}`]),
      consumer: option('consumer', text),
      by: oneOf(['cause'], (value) => ['--by', value]),
      limit,
    },
    run: (deployment, { state, ...values }) =>
      listMessages(deployment, { ...values, ...(state !== undefined && { [state]: true }) }),
  }),
  dlq: reading({
    command: ['dlq', 'list'],
    parameters: { source: argument, limit },
    run: (deployment, values) => listDeadLetters(deployment, { ...values, json: true }),
  }),
  'dlq-show': reading({
    command: ['dlq', 'show'],
    parameters: { source: required, id: required, payload },
    run: showDeadLetter,
  }),
  'redrive-plan': reading({
    command: ['dlq', 'redrive'],
    parameters: { source: required, id: argument, cause, limit },
    run: (deployment, { id, ...values }) => run(redrive, deployment, { ...values, ids: idsOf(id) }),
  }),
  'discard-plan': reading({
    command: ['dlq', 'discard'],
    parameters: {
      ...{ source: required, id: argument, cause },
      ...{ reject: flag('reject'), effectsChecked: flag('effects-checked') },
    },
    run: (deployment, { id, ...values }) => run(discard, deployment, { ...values, ids: idsOf(id) }),
  }),
  doctor: reading({ command: ['doctor'], parameters: {}, run: doctor }),
  audit: reading({ command: ['audit'], parameters: { since, repair: flag('repair') }, run: auditOrRepair }),
  operations: reading({ command: ['operations'], parameters: { since }, run: listOperations }),
};

function idsOf(id: string | undefined): string[] {
  return id === undefined ? [] : [id];
}

export type ReadingName = keyof typeof READINGS;

/** The parameters of each reading in its request; all are texts. */
export type ReadingParameters = {
  readonly [Name in ReadingName]: {
    readonly [Key in keyof Values<(typeof READINGS)[Name]['parameters']>]: string | undefined;
  };
};

/** The documents of the readings. */
export type ReadingDocuments = {
  readonly [Name in ReadingName]: Awaited<ReturnType<(typeof READINGS)[Name]['run']>>['json'];
};

/** True for the name of a reading. */
export function isReading(name: string): name is ReadingName {
  return Object.hasOwn(READINGS, name);
}

/** One run of a reading command. */
export interface Reading<Name extends ReadingName = ReadingName> {
  /** The command to run in a terminal for the same: `npx cdk-mailroom why 01a1fba6 --stage dev`. */
  readonly command: string;
  /** The command's exit code: 0 to 4. */
  readonly exitCode: number;
  readonly at: number;
  /** The document of `--json`: see docs/cli-json.md. `null` if the command failed or was refused. */
  readonly document: ReadingDocuments[Name] | null;
  /** Why it failed or was refused; `null` otherwise. */
  readonly error: Refusal | null;
  /** The lines that the command wrote to stderr. */
  readonly notes: readonly string[];
}

/** A reading that is asked for. */
export interface ReadingRequest {
  /** The words of the command that does the same. */
  readonly words: readonly string[];
  run(deployment: Deployment): Promise<Report<ReadingDocuments[ReadingName]>>;
}

/**
 * Reads the request for a reading. No value becomes an option of the command: one that begins with `-` is refused.
 *
 * @param given - the parameters of the request, each at most once
 * @throws `BAD_ARGUMENT`, naming the parameter
 *
 * @example
 * ```ts
 * readingRequest('why', [['id', '01a1fba6'], ['since', '6h']]).words; // ['why', '01a1fba6', '--since', '6h']
 * ```
 */
export function readingRequest(
  name: ReadingName,
  given: readonly (readonly [string, string])[],
): ReadingRequest {
  const { command, parameters, run } = READINGS[name] as ReadingOf<Parameters, ReadingDocuments[ReadingName]>;
  const values = new Map<string, string>();
  for (const [key, value] of given) {
    const parameter = Object.hasOwn(parameters, key) ? parameters[key] : undefined;
    if (parameter === undefined) {
      const names = Object.keys(parameters).join(', ') || 'none';
      throw refused(key, `is not a parameter of ${name}; its parameters: ${names}`);
    }
    if (values.has(key)) throw refused(key, 'is given twice; give it once');
    check(key, value, parameter);
    values.set(key, value);
  }
  const words = [...command];
  const read: Record<string, unknown> = {};
  for (const [key, parameter] of Object.entries(parameters)) {
    const value = values.get(key);
    if (value === undefined && parameter.required) throw refused(key, 'is missing');
    if (value === undefined) continue;
    words.push(...parameter.words(value));
    read[key] = readValue(key, value, parameter);
  }
  return { words, run: (deployment) => run(deployment, read) };
}

function readValue(key: string, value: string, parameter: Parameter<unknown>): unknown {
  try {
    return parameter.read(value);
  } catch (error) {
    throw refused(key, `is not valid. ${errorMessage(error).replace(/\.$/, '')}`, value);
  }
}

/** @throws `BAD_ARGUMENT` unless the value may be one of the parameter's */
function check(key: string, value: string, { values }: Parameter<unknown>): void {
  if (values !== undefined && !values.includes(value))
    throw refused(key, `must be ${values.join(' or ')}`, value);
  if (value === '' || value.length > PARAMETER_MAX)
    throw refused(key, `must have 1 to ${PARAMETER_MAX} characters`, value.slice(0, 20));
  if (value.startsWith('-')) throw refused(key, 'must not begin with a hyphen', value);
}

function refused(key: string, problem: string, value?: string): MailroomError {
  const is = value === undefined ? '' : ` is "${value}", which`;
  return new MailroomError('BAD_ARGUMENT', `The parameter ${key}${is} ${problem}.`);
}

/** Runs a reading. */
export type RunReading = (request: ReadingRequest) => Promise<Reading>;

/**
 * Creates the readings of a server: each runs a command on the server's deployment. Requests for the same reading at the same time
 * share one run.
 *
 * @param signal - stops the commands that run
 */
export function createReadings(deployment: Deployment, signal: AbortSignal): RunReading {
  const queue = pLimit(AT_ONCE);
  const running = new Map<string, Promise<Reading>>();
  return ({ words, run }) => {
    const name = JSON.stringify(words);
    const known = running.get(name);
    if (known !== undefined) return known;
    const made = queue(async () => ({
      command: deployment.commandLine(shell`${words}`),
      ...(await runQuietly(deployment, run, { signal })),
      at: deployment.clock.now(),
    })).finally(() => running.delete(name));
    running.set(name, made);
    return made;
  };
}
