import { errorCode } from '../../lambdas/runtime/errors.ts';
import type { DeployedRules, Drift } from '../../lambdas/runtime/operations/audit/audit-drift.ts';
import type { Directory } from '../../lambdas/runtime/operations/directory.ts';
import { eachOf } from '../reading/rows-reader.ts';
import {
  busProblems,
  concurrencyProblems,
  functionOf,
  queueMappingProblems,
  relayMappingProblems,
  ruleProblems,
  scheduleProblems,
  streamProblems,
} from './wiring-problems.ts';

/** The wiring port: the deployed resources that move events from one part to the next. */
export interface Wiring {
  /** The event source mappings of a function; none if the function does not exist. */
  mappings(functionName: string): Promise<readonly Mapping[]>;
  /** The reserved concurrency of a function; `null` if none is reserved, `undefined` if the function does not exist. */
  reservedConcurrency(functionName: string): Promise<number | null | undefined>;
  hasBus(name: string): Promise<boolean>;
  readonly rules: DeployedRules;
  /** The ARN of the table's stream; `undefined` if it is off. */
  stream(): Promise<string | undefined>;
}

/** An event source mapping. */
export interface Mapping {
  readonly uuid: string;
  /** The ARN of the queue or stream that it reads. */
  readonly source: string;
  readonly enabled: boolean;
}

/** A part that events pass, and what stops them there. */
export interface WiringProblem {
  /** `stream relay`, `sweep`, `bus`, `table`, or the name of a consumer. */
  readonly part: string;
  readonly problem:
    | 'mapping-disabled'
    | 'no-mapping'
    | 'concurrency-zero'
    | 'no-function'
    | 'no-bus'
    | 'stream-off'
    | Exclude<Drift['problem'], 'no-queue'>;
  /** The problem as a sentence, for people. */
  readonly text: string;
  /** The words of the command that repairs it, without region, profile and endpoint. */
  readonly fix: readonly string[];
}

/** The result of {@link readWiring}. */
export interface WiringReport {
  readonly problems: readonly WiringProblem[];
  /** The checks that were not made because the caller may not read what they need. */
  readonly notChecked: readonly {
    /** The actions that the caller's policies lack. */
    readonly needs: readonly string[];
    /** The parts that were not checked, as in {@link WiringProblem}. */
    readonly parts: readonly string[];
  }[];
}

/** Dependencies of {@link readWiring}. */
export interface WiringDeps {
  readonly directory: Directory;
  readonly wiring: Wiring;
  /** The ARN of a queue; `undefined` if the queue does not exist. */
  readonly queueArn: (url: string) => string | undefined;
}

/** One check: the part that it is about, the actions that it needs, and the problems that it finds. */
interface Check {
  readonly part: string;
  readonly needs: readonly string[];
  readonly find: () => Promise<readonly WiringProblem[]>;
}

/** The actions of {@link DeployedRules.describe}. */
const RULE_ACTIONS = ['events:DescribeRule', 'events:ListTargetsByRule'];

/**
 * Checks that the deployed resources pass events on. A mapping that was disabled or a bus that was deleted by hand shows here at
 * once, and in the table or a queue only after minutes.
 */
export async function readWiring(deps: WiringDeps): Promise<WiringReport> {
  const found = await eachOf(checksOf(deps), async ({ find, ...check }) => {
    try {
      return { problems: await find(), denied: [] };
    } catch (error) {
      if (errorCode(error) !== 'AccessDeniedException') throw error;
      return { problems: [], denied: [check] };
    }
  });
  const denied = found.flatMap((one) => one.denied);
  const needed = [...new Set(denied.map(({ needs }) => needs))];
  return {
    problems: found.flatMap(({ problems }) => problems),
    notChecked: needed.map((needs) => ({
      needs,
      parts: denied.filter((check) => check.needs === needs).map(({ part }) => part),
    })),
  };
}

/** All checks, in the order in which an event passes the parts. */
function checksOf(deps: WiringDeps): Check[] {
  const { directory, wiring } = deps;
  const { mailroom, consumers } = directory;
  const stream = once(() => wiring.stream());
  const bus = once(() => wiring.hasBus(mailroom.bus));
  const relay = { part: 'stream relay', name: mailroom.streamFunction, stack: mailroom.stack };
  const sweep = { part: 'sweep', name: mailroom.sweepFunction, stack: mailroom.stack };
  return [
    { part: 'table', needs: DESCRIBE_TABLE, find: async () => streamProblems(await stream(), mailroom) },
    { part: relay.part, needs: LIST_MAPPINGS, find: () => relayMappingProblems(deps, relay, stream) },
    { part: sweep.part, needs: RULE_ACTIONS, find: () => scheduleProblems(deps) },
    { part: 'bus', needs: DESCRIBE_BUS, find: async () => busProblems(await bus(), directory) },
    ...consumers.flatMap((consumer): Check[] => {
      const { name: part } = consumer;
      return [
        { part, needs: RULE_ACTIONS, find: () => ruleProblems(deps, consumer, bus) },
        { part, needs: LIST_MAPPINGS, find: () => queueMappingProblems(deps, consumer) },
      ];
    }),
    ...[relay, sweep, ...consumers.map(functionOf)].map((checked) => ({
      part: checked.part,
      needs: GET_CONCURRENCY,
      find: () => concurrencyProblems(wiring, checked),
    })),
  ];
}

const DESCRIBE_TABLE = ['dynamodb:DescribeTable'];
const LIST_MAPPINGS = ['lambda:ListEventSourceMappings'];
const DESCRIBE_BUS = ['events:DescribeEventBus'];
const GET_CONCURRENCY = ['lambda:GetFunctionConcurrency'];

function once<T>(read: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => {
    result ??= read();
    return result;
  };
}
