import { isDeepStrictEqual } from 'node:util';
import { jsonObject } from '../../../lambdas/runtime/base/json.ts';
import type { EventRef } from '../../../lambdas/runtime/events/event.ts';
import {
  type Drift,
  type RuleFault,
  ruleFaults,
  ruleName,
} from '../../../lambdas/runtime/operations/audit/audit-drift.ts';
import {
  type ConsumerEntry,
  type Directory,
  deployWords,
  type EntryStack,
  invokedFunction,
} from '../../../lambdas/runtime/operations/directory.ts';
import { foreignEventsOf, mailroomEventsOf } from '../../../lambdas/runtime/operations/subscriptions.ts';
import { STREAM_FILTER } from '../../../lambdas/runtime/relay/stream-filter.ts';
import type { Wiring } from '../../deployment/aws-wiring.ts';
import { pausedText } from './pauses.ts';
import type { WiringDeps, WiringProblem } from './wiring.ts';

/** A function, the part that it belongs to, and its stack. */
export interface CheckedFunction extends EntryStack {
  readonly part: string;
  readonly name: string;
  /** The alias that is invoked; absent: the function itself. */
  readonly alias?: string | undefined;
}

/** The bus of schedules. */
export const DEFAULT_BUS = 'default';

/** A rule that delivers events to a consumer's queue. */
interface RuleRoute {
  readonly bus: string;
  readonly rule: string;
  readonly events: readonly EventRef[];
}

/** Returns the rules of a consumer: for Mailroom events, and for foreign events. A consumer of an existing queue has none. */
export function routesOf({ bus }: Directory['mailroom'], consumer: ConsumerEntry): RuleRoute[] {
  const { foreignRule } = consumer;
  const rule = ruleName(consumer);
  return [
    ...(rule === undefined ? [] : [{ bus, rule, events: mailroomEventsOf(consumer) }]),
    ...(foreignRule === undefined
      ? []
      : [{ bus: foreignRule.bus, rule: foreignRule.name, events: foreignEventsOf(consumer) }]),
  ];
}

/** The function of a consumer. */
export function functionOf({
  name,
  function: functionName,
  alias,
  stack,
  stackPath,
}: ConsumerEntry): CheckedFunction {
  return { part: name, name: functionName, alias, stack, stackPath };
}

/** A table without a stream. @param arn - the ARN of its stream; `undefined` if it is off */
export function streamProblems(arn: string | undefined, mailroom: Directory['mailroom']): WiringProblem[] {
  if (arn !== undefined) return [];
  const text = `the stream of the table ${mailroom.table} is off: the stream relay publishes nothing`;
  return [{ part: 'table', problem: 'stream-off', text, fix: deployWords(mailroom) }];
}

/** A stream relay that does not read the table's stream. */
export async function relayMappingProblems(
  { wiring, directory: { mailroom } }: WiringDeps,
  relay: CheckedFunction,
  stream: () => Promise<string | undefined>,
): Promise<WiringProblem[]> {
  // Without permission to describe the table, any of its streams counts.
  const anyStream = `:table/${mailroom.table}/stream/`;
  const arn = await stream().catch(() => anyStream);
  if (arn === undefined) return []; // reported as `stream-off`
  const isOwn = (source: string) => source.includes(arn);
  return mappingProblems(wiring, relay, isOwn, {
    stopped: 'the stream relay publishes nothing',
    filtered: 'the stream relay publishes only a part of the events, and the others wait for the sweep',
    filter: STREAM_FILTER,
  });
}

/** A consumer whose function does not read its queue. */
export async function queueMappingProblems(
  { wiring, queueArn, pauses }: WiringDeps,
  consumer: ConsumerEntry,
): Promise<WiringProblem[]> {
  const arn = queueArn(consumer.queue);
  if (arn === undefined) return []; // reported as `gone`
  const { name: part } = consumer;
  const problems = await mappingProblems(wiring, functionOf(consumer), (source) => source === arn, {
    stopped: `${part} receives no messages`,
    filtered: `${part} loses messages: Lambda deletes those that the filter does not match. Remove it before you repair what was lost`,
  });
  if (!problems.some(({ problem }) => problem === 'mapping-disabled')) return problems;
  const pause = await pauses(consumer);
  if (pause === undefined) return problems;
  const fix = ['npx', 'cdk-mailroom', 'resume', part];
  return [{ part, problem: 'paused', text: pausedText(part, pause), fix }];
}

async function mappingProblems(
  wiring: Wiring,
  checked: CheckedFunction,
  isOwn: (source: string) => boolean,
  { stopped: effect, filtered, filter }: MappingEffects,
): Promise<WiringProblem[]> {
  const { part, name, alias } = checked;
  const invoked = invokedFunction(name, alias);
  const own = (await wiring.mappings(invoked)).filter(({ source }) => isOwn(source));
  const [first] = own;
  if (own.some(({ enabled }) => enabled))
    return own
      .filter(({ enabled, filters }) => enabled && filters.some((found) => !isFilter(found, filter)))
      .map(({ uuid }) => ({
        part,
        problem: 'mapping-filter' as const,
        text: `${filtered}. The event source mapping of ${invoked} has a filter that Mailroom does not declare`,
        fix: [...UPDATE_MAPPING, uuid, '--filter-criteria', filtersJson(filter)],
        followUp: ['npx', 'cdk-mailroom', 'audit', '--since', '24h'],
      }));
  if (first === undefined) {
    const text = `${effect}: the function ${invoked} has no event source mapping for it`;
    return [{ part, problem: 'no-mapping', text, fix: deployWords(checked) }];
  }
  const text = `${effect}: the event source mapping of ${invoked} is disabled`;
  return [{ part, problem: 'mapping-disabled', text, fix: [...UPDATE_MAPPING, first.uuid, '--enabled'] }];
}

/** The effects of a mapping that does not pass everything on, and its declared filter. @default it has no filter */
interface MappingEffects {
  readonly stopped: string;
  readonly filtered: string;
  readonly filter?: object;
}

const UPDATE_MAPPING = ['aws', 'lambda', 'update-event-source-mapping', '--uuid'];

function isFilter(found: string, declared: object | undefined): boolean {
  return declared !== undefined && isDeepStrictEqual(jsonObject(found), declared);
}

function filtersJson(filter: object | undefined): string {
  return JSON.stringify(filter === undefined ? {} : { Filters: [{ Pattern: JSON.stringify(filter) }] });
}

/** The functions of the relay. */
export function relayFunctions({ streamFunction, sweepFunction, stack, stackPath }: Directory['mailroom']) {
  return {
    relay: { part: 'stream relay', name: streamFunction, stack, stackPath },
    sweep: { part: 'sweep', name: sweepFunction, stack, stackPath },
  };
}

/** A sweep or a heartbeat that is not scheduled. */
export async function scheduleProblems({
  wiring,
  directory: { mailroom },
}: WiringDeps): Promise<WiringProblem[]> {
  const { sweepRule, sweepFunction, heartbeat } = mailroom;
  const found = await Promise.all([
    // An entry of an older version does not name the rule: there, only the age of the last sweep shows that it runs.
    sweepRule === undefined
      ? []
      : scheduled('sweep', 'the sweep does not run', { rule: sweepRule, function: sweepFunction }),
    heartbeat === undefined ? [] : scheduled('heartbeat', 'no heartbeat is sent', heartbeat),
  ]);
  return found.flat();

  async function scheduled(
    part: string,
    effect: string,
    { rule, function: functionName }: { readonly rule: string; readonly function: string },
  ): Promise<WiringProblem[]> {
    const problem = (kind: WiringProblem['problem'], state: string, fix: readonly string[]) => [
      { part, problem: kind, text: `${effect}: its rule ${rule} ${state}`, fix },
    ];
    const deployed = await wiring.rules.describe(DEFAULT_BUS, rule);
    if (deployed === undefined) return problem('no-rule', 'does not exist', deployWords(mailroom));
    if (!deployed.enabled) {
      return problem('rule-disabled', 'is disabled', ['aws', 'events', 'enable-rule', '--name', rule]);
    }
    const invokes = deployed.targets.some((arn) => arn.endsWith(`:function:${functionName}`));
    return invokes ? [] : problem('target', `does not invoke ${functionName}`, deployWords(mailroom));
  }
}

/** A bus that does not exist: its rules are not reported, too. */
export function busProblems(exists: boolean, { mailroom, consumers }: Directory): WiringProblem[] {
  if (exists) return [];
  const { bus } = mailroom;
  const text =
    `the bus ${bus} and its rules do not exist: EventBridge accepts every event and delivers none. Once the bus is back, ` +
    '`audit` finds the events that no consumer received';
  return [{ part: 'bus', problem: 'no-bus', text, fix: deployWords(mailroom, ...consumers) }];
}

/** A consumer whose rules do not deliver the declared events to its queue. */
export async function ruleProblems(
  deps: WiringDeps,
  consumer: ConsumerEntry,
  hasBus: () => Promise<boolean>,
): Promise<WiringProblem[]> {
  const { mailroom } = deps.directory;
  const isThere = await hasBus().catch(() => true);
  const routes = routesOf(mailroom, consumer).filter(({ bus }) => isThere || bus !== mailroom.bus); // reported as `no-bus`
  const found = await Promise.all(routes.map((route) => routeProblems(deps, consumer, route)));
  return found.flat();
}

async function routeProblems(
  { wiring, queueArn }: WiringDeps,
  consumer: ConsumerEntry,
  { bus, rule: name, events }: RuleRoute,
): Promise<WiringProblem[]> {
  const { name: part, queue } = consumer;
  const followUp = events.some((event) => 'foreign' in event)
    ? undefined
    : ['npx', 'cdk-mailroom', 'audit', '--since', '24h'];
  const arn = queueArn(queue);
  const states: Readonly<Record<RuleFault, string>> = {
    'no-rule': `does not exist on the bus ${bus}`,
    'rule-disabled': 'is disabled',
    pattern: 'matches other events than declared',
    target: `does not deliver to its queue ${arn}`,
  };
  return ruleFaults(await wiring.rules.describe(bus, name), events, arn).map((problem) => {
    const effect = problem === 'pattern' ? 'does not receive every event' : 'receives no events';
    return {
      part,
      problem,
      text: `${part} ${effect}: its rule ${name} ${states[problem]}. ${followUp === undefined ? 'Restore it. Foreign events of that time are lost, because the audit does not cover them' : 'Restore it, then find the events that were missed (--since: from before the fault)'}`,
      fix: ruleFix({ problem, rule: name }, bus, consumer),
      followUp,
    };
  });
}

/** The words of the command that restores a consumer's rule or queue: the same in every command that reports it. */
export function ruleFix(
  { problem, rule }: Pick<Drift, 'problem' | 'rule'>,
  bus: string,
  stack: EntryStack,
): string[] {
  if (problem !== 'rule-disabled') return deployWords(stack);
  return ['aws', 'events', 'enable-rule', '--name', rule, '--event-bus-name', bus];
}

/** A function that does not exist or never runs. */
export async function concurrencyProblems(
  wiring: Wiring,
  checked: CheckedFunction,
): Promise<WiringProblem[]> {
  const { part, name } = checked;
  const reserved = await wiring.reservedConcurrency(name);
  if (reserved === undefined) {
    const text = `the function ${name} of ${part} does not exist`;
    return [{ part, problem: 'no-function', text, fix: deployWords(checked) }];
  }
  if (reserved !== 0) return [];
  const text = `the function ${name} of ${part} never runs: its reserved concurrency is 0`;
  const fix = ['aws', 'lambda', 'delete-function-concurrency', '--function-name', name];
  return [{ part, problem: 'concurrency-zero', text, fix }];
}
