import { errorCode } from '../../lambdas/runtime/errors.ts';
import { eachOf } from '../reading/rows-reader.ts';
import type { WiringDeps, WiringProblem, WiringReport } from './wiring.ts';
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

/** One check: the part that it is about, the actions that it needs, and the problems that it finds. */
interface WiringCheck {
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
function checksOf(deps: WiringDeps): WiringCheck[] {
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
    ...consumers.flatMap((consumer): WiringCheck[] => {
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
