import pLimit from 'p-limit';
import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { shell } from '../../terminal/shell.ts';
import type { Reading, ReadingName, ReadingParameters } from './protocol.ts';
import { type RunMailroom, runCommand } from './run-command.ts';

/** Readings that run at the same time. More would only throttle each other: Lambda allows an account few reads. */
const AT_ONCE = 4;

/** The longest parameter. Ids and names are shorter. */
const PARAMETER_MAX = 500;

/** A parameter as words of a command: an argument, or an option. */
interface Parameter {
  readonly required?: true;
  /** Its values. @default any text that cannot be taken for an option */
  readonly values?: readonly string[];
  words(value: string): string[];
}

const argument: Parameter = { words: (value) => [value] };
const required: Parameter = { ...argument, required: true };
const byCause: Parameter = { values: ['cause'], words: (value) => ['--by', value] };
const flag = (name: string): Parameter => ({ values: ['1'], words: () => [`--${name}`] });
const payload = flag('payload');
const option = (name: string): Parameter => ({ words: (value) => [`--${name}`, value] });
const state = (...values: readonly string[]): Parameter => ({ values, words: (value) => [`--${value}`] });

type ParametersOf<Name extends ReadingName> = {
  readonly [Key in keyof ReadingParameters[Name]]-?: Parameter;
};

/** Each reading as a command, and its parameters in the order of the command's words. */
const READINGS: {
  readonly [Name in ReadingName]: {
    readonly command: readonly string[];
    readonly parameters: ParametersOf<Name>;
  };
} = {
  why: { command: ['why'], parameters: { id: required, since: option('since'), payload } },
  messages: {
    command: ['messages', 'list'],
    parameters: {
      state: state('failed', 'rejected', 'waiting'),
      consumer: option('consumer'),
      by: byCause,
      limit: option('limit'),
    },
  },
  dlq: { command: ['dlq', 'list'], parameters: { source: argument, by: byCause, limit: option('limit') } },
  'dlq-show': { command: ['dlq', 'show'], parameters: { source: required, id: required, payload } },
  'redrive-plan': {
    command: ['dlq', 'redrive'],
    parameters: { source: required, id: argument, cause: option('cause'), limit: option('limit') },
  },
  'discard-plan': {
    command: ['dlq', 'discard'],
    parameters: { source: required, id: argument, cause: option('cause') },
  },
  doctor: { command: ['doctor'], parameters: {} },
  audit: { command: ['audit'], parameters: { since: option('since'), repair: flag('repair') } },
  operations: { command: ['operations'], parameters: { since: option('since') } },
};

/** True for the name of a reading. */
export function isReading(name: string): name is ReadingName {
  return Object.hasOwn(READINGS, name);
}

/**
 * The words of the command for a reading. No value becomes an option: one that begins with `-` is refused.
 *
 * @param given - the parameters of the request, each at most once
 * @throws `BAD_ARGUMENT`, naming the parameter
 *
 * @example
 * ```ts
 * readingArgv('why', [['id', '01a1fba6'], ['since', '6h']]); // ['why', '01a1fba6', '--since', '6h']
 * ```
 */
export function readingArgv(name: ReadingName, given: readonly (readonly [string, string])[]): string[] {
  const { command, parameters } = READINGS[name];
  const known: readonly (readonly [string, Parameter])[] = Object.entries(parameters);
  for (const [key, value] of given) check(key, value, { name, known, given });
  return [
    ...command,
    ...known.flatMap(([key, parameter]) => {
      const [, value] = given.find(([own]) => own === key) ?? [];
      if (value === undefined && parameter.required) throw refused(key, 'is missing');
      return value === undefined ? [] : parameter.words(value);
    }),
  ];
}

interface CheckContext {
  readonly name: ReadingName;
  readonly known: readonly (readonly [string, Parameter])[];
  readonly given: readonly (readonly [string, string])[];
}

function check(key: string, value: string, { name, known, given }: CheckContext): void {
  const [, parameter] = known.find(([own]) => own === key) ?? [];
  if (parameter === undefined) {
    const names = known.map(([own]) => own).join(', ') || 'none';
    throw refused(key, `is not a parameter of ${name}; its parameters: ${names}`);
  }
  if (given.filter(([own]) => own === key).length > 1) throw refused(key, 'is given twice; give it once');
  const { values } = parameter;
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

/** Properties of {@link createReadings}. */
interface ReadingsDeps {
  readonly deployment: Deployment;
  readonly run: RunMailroom;
  /** Stops the commands that run. */
  readonly signal: AbortSignal;
}

/** Runs the command of a reading. @param argv - of {@link readingArgv} */
export type RunReading = (argv: readonly string[]) => Promise<Reading>;

/**
 * Creates the readings of a server: each runs a command of `mailroom` on the server's deployment. Requests for the same reading at the
 * same time share one run.
 */
export function createReadings({ deployment, run, signal }: ReadingsDeps): RunReading {
  const limit = pLimit(AT_ONCE);
  const running = new Map<string, Promise<Reading>>();
  const read: RunReading = async (argv) => {
    const { exitCode, document, notes } = await runCommand(run, deployment, argv, { signal });
    return {
      command: deployment.commandLine(shell`${argv}`),
      exitCode,
      at: deployment.clock.now(),
      document,
      notes,
    };
  };
  return (argv) => {
    const name = JSON.stringify(argv);
    const known = running.get(name);
    if (known !== undefined) return known;
    const reading = limit(() => read(argv)).finally(() => running.delete(name));
    running.set(name, reading);
    return reading;
  };
}
