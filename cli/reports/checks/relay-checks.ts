import { readRelayConfig } from '../../../lambdas/runtime/base/config.ts';
import { STUCK_MS } from '../../../lambdas/runtime/base/patience.ts';
import { deployWords, type EntryStack } from '../../../lambdas/runtime/operations/directory.ts';
import { STREAM_FILTER } from '../../../lambdas/runtime/relay/stream-settings.ts';
import { SCHEMA } from '../../../lambdas/runtime/store/row-schema.ts';
import { duration } from '../../terminal/times.ts';
import {
  type AsyncProblems,
  type CheckDeps,
  type CheckedFunction,
  type CommandWords,
  check,
  type PartCheck,
  type RemediedProblems,
  readWith,
  relayFunctions,
} from './check.ts';
import { concurrencyFaults, mappingFaults, settingsOf, startFaults } from './function-checks.ts';

/** The bus of schedules. */
export const DEFAULT_BUS = 'default';

/** The checks of the relay, its schedules and its bus. */
export function relayChecks(deps: CheckDeps): PartCheck[] {
  const { resources, directory } = deps;
  const { mailroom } = directory;
  const { relay, sweep } = relayFunctions(mailroom);
  const { sweepRule, sweepFunction, heartbeat } = mailroom;
  const both = [relay, sweep];
  const schedules = [
    // An entry of an older version does not name the rule: there, only the age of the last sweep shows that it runs.
    ...(sweepRule === undefined
      ? []
      : [{ part: sweep.part, effect: 'the sweep does not run', rule: sweepRule, function: sweepFunction }]),
    ...(heartbeat === undefined ? [] : [{ part: 'heartbeat', effect: 'no heartbeat is sent', ...heartbeat }]),
  ];
  return [
    check('table', 'flow', () => noStream(deps), mailroom),
    check(relay.part, 'flow', () => streamFaults(deps, relay), mailroom),
    ...schedules.map((schedule) =>
      check(schedule.part, 'flow', () => scheduleFaults(deps, schedule), mailroom),
    ),
    busCheck(deps),
    ...both.map((one) => check(one.part, 'flow', () => concurrencyFaults(resources, one), mailroom)),
    check(sweep.part, 'flow', () => silence(deps)),
    ...both.map((one) => check(one.part, 'settings', () => functionSettings(deps, one), mailroom)),
  ];
}

function busCheck(deps: CheckDeps): PartCheck {
  return check('bus', 'flow', () => busFaults(deps), deps.directory.mailroom);
}

/** A table without the stream that the relay reads. */
async function* noStream({ directory, resources }: CheckDeps): AsyncProblems {
  if ((await resources.table()).streamArn !== undefined) return;
  const text = `the stream of the table ${directory.mailroom.table} is off: the stream relay publishes nothing`;
  yield { problem: 'stream-off', text };
}

/** A stream that the relay does not read. */
async function* streamFaults({ directory, resources }: CheckDeps, relay: CheckedFunction): AsyncProblems {
  // Without permission to describe the table, any of its streams counts.
  const anyStream = { streamArn: streamOf(directory.mailroom.table) };
  const { streamArn } = await resources.table().catch(() => anyStream);
  if (streamArn === undefined) return; // reported as `stream-off`
  yield* mappingFaults(resources, relay, (source) => source.includes(streamArn), {
    stopped: 'the stream relay publishes nothing',
    filtered: 'the stream relay publishes only a part of the events, and the others wait for the sweep',
    filter: STREAM_FILTER,
  });
}

/** The part of the ARN of a stream that names its table. */
function streamOf(table: string): string {
  return `:table/${table}/stream/`;
}

/** A rule of the default bus, the function that it invokes each minute, and the effect if it does not. */
interface MinuteSchedule {
  readonly rule: string;
  readonly function: string;
  readonly effect: string;
}

async function* scheduleFaults(
  { resources }: CheckDeps,
  { rule, function: invoked, effect }: MinuteSchedule,
): AsyncProblems {
  const found = await resources.rule(DEFAULT_BUS, rule);
  const its = `${effect}: its rule ${rule}`;
  const enable: CommandWords = ['aws', 'events', 'enable-rule', '--name', rule];
  if (found === undefined) yield { problem: 'no-rule', text: `${its} does not exist` };
  else if (!found.enabled) yield { problem: 'rule-disabled', text: `${its} is disabled`, fix: enable };
  else if (!found.targets.some(({ arn }) => arn.endsWith(`:function:${invoked}`)))
    yield { problem: 'target', text: `${its} does not invoke ${invoked}` };
}

/** A bus that does not exist: its rules are not reported, too. */
async function* busFaults({ directory: { mailroom, consumers }, resources }: CheckDeps): AsyncProblems {
  const { bus } = mailroom;
  if (await resources.hasBus(bus)) return;
  const text = `the bus ${bus} and its rules do not exist: EventBridge accepts every event and delivers none. Once the bus is back, \`audit\` finds the events that no consumer received`;
  yield { problem: 'no-bus', text, fix: deployWords(mailroom, ...consumers) };
}

/** A relay whose environment belongs to another Mailroom. */
async function* functionSettings(
  { directory, resources }: CheckDeps,
  checked: CheckedFunction,
): AsyncProblems {
  const { table, bus } = directory.mailroom;
  const found = yield* startFaults(resources, checked, readRelayConfig);
  if (found === undefined) return;
  const { tableName, busName } = found.settings;
  if (tableName !== table) {
    const text = `${checked.part} reads the table ${tableName} instead of ${table}: it publishes no event of this Mailroom`;
    yield { problem: 'settings', resource: 'table', text };
  } else if (busName !== bus) {
    const text = `${checked.part} publishes to the bus ${busName} instead of ${bus}: no consumer receives its events`;
    yield { problem: 'settings', resource: 'bus', text };
  }
}

/** The IAM actions that reading the sweep's state needs: before its first pass, it is the table's age. */
const STATE_ACTIONS = ['dynamodb:GetItem', 'dynamodb:DescribeTable'];

/** A sweep whose schedule runs, but that has not completed a pass for longer than its interval allows. */
async function* silence({ directory, resources, now, sweptAt }: CheckDeps): RemediedProblems {
  const silentMs = now - (await readWith(STATE_ACTIONS, sweptAt));
  if (silentMs <= STUCK_MS) return;
  // Without permission to read its interval, five minutes count.
  const found = await resources.function(directory.mailroom.sweepFunction).catch(() => undefined);
  const settings = found && settingsOf(readRelayConfig, found);
  const everyMs = typeof settings === 'object' ? settings.sweepEveryMs : 0;
  if (silentMs <= 3 * everyMs) return;
  const text = `the sweep has not completed a pass for ${duration(silentMs)}: events that the stream relay misses wait. The command shows its error`;
  yield { problem: 'sweep-silent', text, fix: ['npx', 'cdk-mailroom', 'sweep', '--since', '1h'] };
}

/** Checks that the stacks and this command read the rows that exist. @param rowSchema - the version of the sweep's state row */
export function versionChecks(
  { directory: { mailroom, consumers } }: CheckDeps,
  rowSchema: () => Promise<number | undefined>,
): PartCheck[] {
  const entries = [{ ...mailroom, name: 'sweep' }, ...consumers];
  const newest = async () => {
    const written = (await readWith(STATE_ACTIONS, rowSchema)) ?? 1;
    return Math.max(written, ...entries.map(({ schema = 1 }) => schema));
  };
  return [
    ...entries.map((entry) => check(entry.name, 'surroundings', () => olderVersion(entry, newest), entry)),
    check('this machine', 'surroundings', () => newerVersion(newest)),
  ];
}

/** An entry of version 0.1 or older has no `schema`. */
interface VersionedEntry extends EntryStack {
  readonly name: string;
  readonly schema?: number | undefined;
}

/**
 * A stack deployed with an older version than the rows. Rows have the version of the function that wrote them, and each entry has
 * the version with which its stack was deployed.
 */
async function* olderVersion(
  { name, schema, stack }: VersionedEntry,
  newestSchema: () => Promise<number>,
): AsyncProblems {
  const newest = await newestSchema();
  if (schema === undefined || schema >= newest) return;
  const text = `the stack ${stack} was deployed with a version that reads rows up to schema ${schema}, but rows of schema ${newest} exist: ${name} cannot read them`;
  yield { problem: 'older-version', text };
}

/** Rows of a newer version than this command. */
async function* newerVersion(newestSchema: () => Promise<number>): RemediedProblems {
  const newest = await newestSchema();
  if (newest <= SCHEMA) return;
  const text = `rows of schema ${newest} exist, but this version of the command reads up to ${SCHEMA}: it reports them as unreadable`;
  yield { problem: 'newer-version', text, fix: ['npm', 'install', '--save-dev', '@cdk-mailroom/cli@latest'] };
}
