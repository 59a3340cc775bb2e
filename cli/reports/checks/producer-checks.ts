import { AT_ONCE_VARIABLE, producerSettings } from '../../../lambdas/runtime/base/config.ts';
import { errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import {
  type ConsumerEntry,
  type Directory,
  deployWords,
} from '../../../lambdas/runtime/operations/directory.ts';
import type { WritingFunction } from '../../deployment/resources.ts';
import {
  type CheckDeps,
  check,
  FIND_MISSED,
  type PartCheck,
  type RemediedProblem,
  type RemediedProblems,
  stackNameOf,
} from './check.ts';

/**
 * Checks every function of the account that writes events, also those that no construct has made: with other settings than the Mailroom,
 * its events are stored and not published, and nothing fails.
 */
export function producerChecks(deps: CheckDeps): PartCheck[] {
  return [check('producers', 'surroundings', () => producerFaults(deps))];
}

async function* producerFaults({ directory, resources }: CheckDeps): RemediedProblems {
  const { mailroom, consumers } = directory;
  const { table, sources = [] } = mailroom;
  for (const writer of await resources.writers()) {
    const { name, environment } = writer;
    // The heartbeat is compared with its declaration. A consumer that publishes nothing writes no event.
    if (name === mailroom.heartbeat?.function || publishesNothing(environment)) continue;
    const { MAILROOM_TABLE: own = '', MAILROOM_SERVICE: service = '' } = environment;
    const owner = consumers.find((consumer) => consumer.function === name);
    if (own === table) {
      for (const fault of settingFaults(mailroom, writer, owner)) yield problemOf(name, fault, owner);
    } else if (owner === undefined && sources.includes(service) && !(await resources.hasMailroom(own))) {
      const effect = `the relay publishes no event of ${service} that ${name} writes, because no Mailroom has that table`;
      yield problemOf(name, { variable: 'MAILROOM_TABLE', value: own, expected: table, effect });
    }
  }
}

/** A variable of a producer that does not fit its Mailroom. */
interface VariableFault {
  readonly variable: string;
  readonly value: string;
  readonly expected: string;
  readonly effect: string;
  /** The step after the correction, for {@link followUp}. */
  readonly next?: string;
  readonly followUp?: readonly string[];
}

/** @param owner - the consumer whose function it is: whether that can start has its own check */
function* settingFaults(
  { shards, bus, sources }: Directory['mailroom'],
  { environment }: WritingFunction,
  owner: ConsumerEntry | undefined,
): Generator<VariableFault | string> {
  const { MAILROOM_SERVICE: service = '', MAILROOM_BUS: ownBus = '' } = environment;
  const settings = settingsOf(environment);
  if (typeof settings === 'string') {
    if (owner === undefined) yield settings;
    return;
  }
  if (settings.shards > shards)
    yield {
      ...{ variable: 'MAILROOM_SHARDS', value: `${settings.shards}`, expected: `${shards}` },
      effect: 'the sweep reads the other shards only once the stream relay has received an event in them',
      next: 'Then publish what waits there (--since: from before the fault)',
      followUp: ['npx', 'cdk-mailroom', 'sweep', '--since', '24h', '--shards', `${settings.shards}`],
    };
  if (sources !== undefined && !sources.includes(service))
    yield {
      ...{ variable: 'MAILROOM_SERVICE', value: service, expected: sources.join(' or ') },
      effect: 'the relay does not publish events of that source, which wait until it is declared',
    };
  // The bus is a producer's own setting only if it publishes at once.
  if (AT_ONCE_VARIABLE in environment && ownBus.split('/').at(-1) !== bus)
    yield {
      ...{ variable: 'MAILROOM_BUS', value: ownBus, expected: bus },
      effect: 'no consumer receives what it publishes at once, and the relay does not publish it again',
      next: 'Then find the events that were missed (--since: from before the fault)',
      followUp: FIND_MISSED,
    };
}

function publishesNothing({ MAILROOM_PUBLISHES: publishes = '' }: WritingFunction['environment']): boolean {
  return /^\s*\[\s*\]\s*$/.test(publishes);
}

/** The settings of a producer, or why it does not start. */
function settingsOf(environment: WritingFunction['environment']) {
  try {
    return producerSettings.read(environment);
  } catch (error) {
    return errorMessage(error);
  }
}

/** @param owner - the consumer whose function it is, which the deployment of its stack repairs; without one, the command names the stack */
function problemOf(name: string, fault: VariableFault | string, owner?: ConsumerEntry): RemediedProblem {
  const fix = owner === undefined ? stackNameOf(name) : deployWords(owner);
  if (typeof fault === 'string')
    return { problem: 'producer', resource: name, text: `${name} cannot write events: ${fault}`, fix };
  const { variable, value, expected, effect, next, followUp } = fault;
  const sentences = [
    `${name} has ${variable} ${value} instead of ${expected}: ${effect}`,
    ...(owner === undefined
      ? [
          `Correct it in the deployment of ${name}, whose stack the command names: a command of AWS would replace all of its variables`,
        ]
      : []),
    ...(next === undefined ? [] : [next]),
  ];
  return {
    problem: 'producer',
    physicalId: name,
    resource: `${name} ${variable}`,
    type: 'AWS::Lambda::Function',
    member: `Environment.Variables.${variable}`,
    declared: expected,
    deployed: value,
    text: sentences.join('. '),
    fix,
    followUp,
  };
}
