import { takesExactly } from '../../lambdas/runtime/bus/rule-pattern.ts';
import { errorCode } from '../../lambdas/runtime/errors.ts';
import {
  type DeployedRules,
  type Drift,
  ruleName,
} from '../../lambdas/runtime/operations/audit/audit-drift.ts';
import type { ConsumerEntry, Directory } from '../../lambdas/runtime/operations/directory.ts';
import { eachOf } from '../reading/rows-reader.ts';

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

/** A check that was not made because the caller may not read what it needs. */
export interface NotChecked {
  /** The actions that the caller's policies lack. */
  readonly needs: readonly string[];
  /** The parts that were not checked, as in {@link WiringProblem}. */
  readonly parts: readonly string[];
}

/** The result of {@link readWiring}. */
export interface WiringReport {
  readonly problems: readonly WiringProblem[];
  readonly notChecked: readonly NotChecked[];
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

/** A function, the part that it belongs to, and its stack. */
interface CheckedFunction {
  readonly part: string;
  readonly name: string;
  readonly stack: string;
}

/** The bus of schedules. */
const DEFAULT_BUS = 'default';

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

function functionOf({ name, function: functionName, stack }: ConsumerEntry): CheckedFunction {
  return { part: name, name: functionName, stack };
}

function streamProblems(arn: string | undefined, { table, stack }: Directory['mailroom']): WiringProblem[] {
  if (arn !== undefined) return [];
  const text = `the stream of the table ${table} is off: the stream relay publishes nothing`;
  return [{ part: 'table', problem: 'stream-off', text, fix: deploy(stack) }];
}

async function relayMappingProblems(
  { wiring, directory: { mailroom } }: WiringDeps,
  relay: CheckedFunction,
  stream: () => Promise<string | undefined>,
): Promise<WiringProblem[]> {
  // Without permission to describe the table, any of its streams counts.
  const anyStream = `:table/${mailroom.table}/stream/`;
  const arn = await stream().catch(() => anyStream);
  if (arn === undefined) return []; // reported as `stream-off`
  const effect = 'the stream relay publishes nothing';
  return mappingProblems(wiring, relay, (source) => source.includes(arn), effect);
}

async function queueMappingProblems(
  { wiring, queueArn }: WiringDeps,
  consumer: ConsumerEntry,
): Promise<WiringProblem[]> {
  const arn = queueArn(consumer.queue);
  if (arn === undefined) return []; // reported as `gone`
  const effect = `${consumer.name} receives no messages`;
  return mappingProblems(wiring, functionOf(consumer), (source) => source === arn, effect);
}

async function mappingProblems(
  wiring: Wiring,
  { part, name, stack }: CheckedFunction,
  isOwn: (source: string) => boolean,
  effect: string,
): Promise<WiringProblem[]> {
  const own = (await wiring.mappings(name)).filter(({ source }) => isOwn(source));
  const [first] = own;
  if (own.some(({ enabled }) => enabled)) return [];
  if (first === undefined) {
    const text = `${effect}: the function ${name} has no event source mapping for it`;
    return [{ part, problem: 'no-mapping', text, fix: deploy(stack) }];
  }
  const text = `${effect}: the event source mapping of ${name} is disabled`;
  const fix = ['aws', 'lambda', 'update-event-source-mapping', '--uuid', first.uuid, '--enabled'];
  return [{ part, problem: 'mapping-disabled', text, fix }];
}

async function scheduleProblems({ wiring, directory: { mailroom } }: WiringDeps): Promise<WiringProblem[]> {
  const { sweepRule, sweepFunction, stack } = mailroom;
  // An entry of an older version does not name the rule: there, only the age of the last sweep shows that it runs.
  if (sweepRule === undefined) return [];
  const problem = (kind: WiringProblem['problem'], state: string, fix: readonly string[]) => [
    { part: 'sweep', problem: kind, text: `the sweep does not run: its rule ${sweepRule} ${state}`, fix },
  ];
  const rule = await wiring.rules.describe(DEFAULT_BUS, sweepRule);
  if (rule === undefined) return problem('no-rule', 'does not exist', deploy(stack));
  if (!rule.enabled) {
    return problem('rule-disabled', 'is disabled', ['aws', 'events', 'enable-rule', '--name', sweepRule]);
  }
  const invokes = rule.targets.some((arn) => arn.endsWith(`:function:${sweepFunction}`));
  return invokes ? [] : problem('target', `does not invoke ${sweepFunction}`, deploy(stack));
}

function busProblems(exists: boolean, { mailroom, consumers }: Directory): WiringProblem[] {
  if (exists) return [];
  const { bus, stack } = mailroom;
  const stacks = [...new Set([stack, ...consumers.map((consumer) => consumer.stack)])];
  const text =
    `the bus ${bus} and its rules do not exist: EventBridge accepts every event and delivers none. Once the bus is back, ` +
    '`audit` finds the events that no consumer received';
  return [{ part: 'bus', problem: 'no-bus', text, fix: deploy(...stacks) }];
}

async function ruleProblems(
  { wiring, directory: { mailroom }, queueArn }: WiringDeps,
  consumer: ConsumerEntry,
  hasBus: () => Promise<boolean>,
): Promise<WiringProblem[]> {
  const { bus } = mailroom;
  const { name: part, stack, events, queue } = consumer;
  if (!(await hasBus().catch(() => true))) return []; // reported as `no-bus`
  const name = ruleName(consumer);
  const problem = (kind: WiringProblem['problem'], state: string, fix = deploy(stack)) => ({
    part,
    problem: kind,
    text: `${part} does not receive every event: its rule ${name} ${state}. Once it is restored, \`audit\` finds the events that it missed`,
    fix,
  });
  const rule = await wiring.rules.describe(bus, name);
  if (rule === undefined) return [problem('no-rule', `does not exist on the bus ${bus}`)];
  const enable = ['aws', 'events', 'enable-rule', '--name', name, '--event-bus-name', bus];
  const arn = queueArn(queue);
  return [
    ...(rule.enabled ? [] : [problem('rule-disabled', 'is disabled', enable)]),
    ...(takesExactly(rule.pattern, events) ? [] : [problem('pattern', 'matches other events than declared')]),
    ...(arn === undefined || rule.targets.includes(arn)
      ? []
      : [problem('target', `does not deliver to its queue ${arn}`)]),
  ];
}

async function concurrencyProblems(
  wiring: Wiring,
  { part, name, stack }: CheckedFunction,
): Promise<WiringProblem[]> {
  const reserved = await wiring.reservedConcurrency(name);
  if (reserved === undefined) {
    const text = `the function ${name} of ${part} does not exist`;
    return [{ part, problem: 'no-function', text, fix: deploy(stack) }];
  }
  if (reserved !== 0) return [];
  const text = `the function ${name} of ${part} never runs: its reserved concurrency is 0`;
  const fix = ['aws', 'lambda', 'delete-function-concurrency', '--function-name', name];
  return [{ part, problem: 'concurrency-zero', text, fix }];
}

/** The command that restores what was changed or deleted by hand. */
function deploy(...stacks: readonly string[]): string[] {
  return ['npx', 'cdk', 'deploy', ...stacks, '--revert-drift'];
}

function once<T>(read: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => {
    result ??= read();
    return result;
  };
}
