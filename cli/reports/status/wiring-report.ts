import { type PartCheck, readOnce, runChecks } from './part-checks.ts';
import type { WiringDeps, WiringProblem, WiringReport } from './wiring.ts';
import {
  busProblems,
  concurrencyProblems,
  functionOf,
  queueMappingProblems,
  relayFunctions,
  relayMappingProblems,
  ruleProblems,
  scheduleProblems,
  streamProblems,
} from './wiring-problems.ts';

/** The actions of {@link DeployedRules.describe}. */
const RULE_ACTIONS = ['events:DescribeRule', 'events:ListTargetsByRule'];

/**
 * Checks that the deployed resources pass events on. A mapping that was disabled or a bus that was deleted by hand shows here at
 * once, and in the table or a queue only after minutes.
 */
export function readWiring(deps: WiringDeps): Promise<WiringReport> {
  return runChecks(wiringChecks(deps));
}

/** The checks of the wiring, in the order in which an event passes the parts. */
export function wiringChecks(deps: WiringDeps): PartCheck<WiringProblem['problem']>[] {
  const { directory, wiring } = deps;
  const { mailroom, consumers } = directory;
  const stream = readOnce(() => wiring.stream());
  const bus = readOnce(() => wiring.hasBus(mailroom.bus));
  const { relay, sweep } = relayFunctions(mailroom);
  return [
    { part: 'table', needs: DESCRIBE_TABLE, find: async () => streamProblems(await stream(), mailroom) },
    { part: relay.part, needs: LIST_MAPPINGS, find: () => relayMappingProblems(deps, relay, stream) },
    { part: sweep.part, needs: RULE_ACTIONS, find: () => scheduleProblems(deps) },
    { part: 'bus', needs: DESCRIBE_BUS, find: async () => busProblems(await bus(), directory) },
    ...consumers.flatMap((consumer): PartCheck<WiringProblem['problem']>[] => {
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
