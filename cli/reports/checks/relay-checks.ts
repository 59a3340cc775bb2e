import { readRelayConfig } from '../../../lambdas/runtime/base/config.ts';
import {
  type Directory,
  deployWords,
  type EntryStack,
} from '../../../lambdas/runtime/operations/directory.ts';
import { STREAM_FILTER } from '../../../lambdas/runtime/relay/stream-settings.ts';
import { SCHEMA } from '../../../lambdas/runtime/store/rows.ts';
import type { Resources } from '../../deployment/resources.ts';
import { duration } from '../../terminal/times.ts';
import {
  type CheckDeps,
  type CheckedFunction,
  check,
  type PartCheck,
  readWith,
  relayFunctions,
  STUCK_MS,
} from './check.ts';
import {
  concurrencyCheck,
  functionCheck,
  itemFailures,
  mappingFaults,
  mappingOf,
  settingsOf,
  updateMapping,
} from './function-checks.ts';
import { missingQueue, shortRetention } from './queue-faults.ts';

/** The bus of schedules. */
export const DEFAULT_BUS = 'default';

/** The checks of the relay, its schedules and its bus. */
export function relayChecks({ directory, resources }: CheckDeps): PartCheck[] {
  const { mailroom } = directory;
  const { relay, sweep } = relayFunctions(mailroom);
  const { sweepRule, sweepFunction, heartbeat } = mailroom;
  const schedule = (part: string, effect: string, found: MinuteSchedule) =>
    scheduleCheck(resources, mailroom, part, effect, found);
  return [
    relayMappingCheck(resources, relay, mailroom.table),
    // An entry of an older version does not name the rule: there, only the age of the last sweep shows that it runs.
    ...(sweepRule === undefined
      ? []
      : [schedule(sweep.part, 'the sweep does not run', { rule: sweepRule, function: sweepFunction })]),
    ...(heartbeat === undefined ? [] : [schedule('heartbeat', 'no heartbeat is sent', heartbeat)]),
    busCheck(resources, directory),
    ...[relay, sweep].map((checked) => concurrencyCheck(resources, checked)),
    relaySettingsCheck(resources, relay, mailroom),
    check(relay.part, 'settings', async function* () {
      const { failureQueue: url } = mailroom;
      const queue = await resources.queue(url);
      if (queue === undefined) yield missingQueue(mailroom, url);
      else yield* shortRetention('the queue of discarded batches', url, queue);
    }),
    ...[relay, sweep].map((checked) => relayFunctionCheck(resources, checked, mailroom)),
  ];
}

function relayMappingCheck(resources: Resources, relay: CheckedFunction, table: string): PartCheck {
  return check(relay.part, 'flow', async function* () {
    // Without permission to describe the table, any of its streams counts.
    const anyStream = { streamArn: streamOf(table) };
    const { streamArn } = await resources.table().catch(() => anyStream);
    if (streamArn === undefined) return; // reported as `stream-off`
    yield* mappingFaults(resources, relay, (source) => source.includes(streamArn), {
      stopped: 'the stream relay publishes nothing',
      filtered: 'the stream relay publishes only a part of the events, and the others wait for the sweep',
      filter: STREAM_FILTER,
    });
  });
}

/** The part of the ARN of a stream that names its table. */
function streamOf(table: string): string {
  return `:table/${table}/stream/`;
}

/** A rule of the default bus, and the function that it invokes. */
interface MinuteSchedule {
  readonly rule: string;
  readonly function: string;
}

function scheduleCheck(
  resources: Resources,
  stack: EntryStack,
  part: string,
  effect: string,
  { rule, function: invoked }: MinuteSchedule,
): PartCheck {
  return check(part, 'flow', async function* () {
    const found = await resources.rule(DEFAULT_BUS, rule);
    const its = `${effect}: its rule ${rule}`;
    if (found === undefined)
      yield { problem: 'no-rule', text: `${its} does not exist`, fix: deployWords(stack) };
    else if (!found.enabled)
      yield {
        problem: 'rule-disabled',
        text: `${its} is disabled`,
        fix: ['aws', 'events', 'enable-rule', '--name', rule],
      };
    else if (!found.targets.some(({ arn }) => arn.endsWith(`:function:${invoked}`)))
      yield { problem: 'target', text: `${its} does not invoke ${invoked}`, fix: deployWords(stack) };
  });
}

/** A bus that does not exist: its rules are not reported, too. */
function busCheck(resources: Resources, { mailroom, consumers }: Directory): PartCheck {
  const { bus } = mailroom;
  return check('bus', 'flow', async function* () {
    if (await resources.hasBus(bus)) return;
    const text = `the bus ${bus} and its rules do not exist: EventBridge accepts every event and delivers none. Once the bus is back, \`audit\` finds the events that no consumer received`;
    yield { problem: 'no-bus', text, fix: deployWords(mailroom, ...consumers) };
  });
}

/** Settings of the stream mapping that let one bad record block or lose others. */
function relaySettingsCheck(
  resources: Resources,
  relay: CheckedFunction,
  { table, failureQueue }: Directory['mailroom'],
): PartCheck {
  return check(relay.part, 'settings', async function* () {
    const mapping = await mappingOf(resources, relay, (source) => source.includes(streamOf(table)));
    if (mapping === undefined) return; // reported as `no-mapping`
    const one = `the event source mapping of ${relay.name}`;
    yield* itemFailures(relay, mapping, 'events whose publish failed wait for the sweep');
    if (!mapping.bisects) {
      const text = `${one} does not halve a failing batch: one record that crashes the stream relay holds up its whole batch`;
      yield { problem: 'no-bisect', text, fix: updateMapping(mapping, '--bisect-batch-on-function-error') };
    }
    const queue = await resources.queue(failureQueue);
    if (queue !== undefined && mapping.failureDestination !== queue.arn) {
      const text = `${one} does not send discarded batches to the queue ${queue.arn}: nothing reports that the stream relay discarded them`;
      const destination = JSON.stringify({ OnFailure: { Destination: queue.arn } });
      yield {
        problem: 'no-failure-destination',
        text,
        fix: updateMapping(mapping, '--destination-config', destination),
      };
    }
    if ((mapping.retriesMax ?? -1) < 0) {
      const text = `${one} retries a failing batch without limit: new events of its shard wait behind it`;
      yield { problem: 'endless-retries', text, fix: deployWords(relay) };
    }
  });
}

/** A relay whose environment belongs to another Mailroom. */
function relayFunctionCheck(
  resources: Resources,
  checked: CheckedFunction,
  { table, bus }: Directory['mailroom'],
): PartCheck {
  const { part } = checked;
  return functionCheck(resources, checked, readRelayConfig, async function* ({ tableName, busName }) {
    if (tableName !== table) {
      const text = `${part} reads the table ${tableName} instead of ${table}: it publishes no event of this Mailroom`;
      yield { problem: 'settings', text, fix: deployWords(checked) };
    } else if (busName !== bus) {
      const text = `${part} publishes to the bus ${busName} instead of ${bus}: no consumer receives its events`;
      yield { problem: 'settings', text, fix: deployWords(checked) };
    }
  });
}

/** The IAM actions that reading the sweep's state needs: before its first pass, it is the table's age. */
const STATE_ACTIONS = ['dynamodb:GetItem', 'dynamodb:DescribeTable'];

/** Reads the state row of the sweep. */
export interface SweepStateReader {
  /** AWS's time, epoch milliseconds. */
  readonly now: number;
  /** When the sweep's last complete pass began; before the first, when the table was created. Epoch milliseconds. */
  readonly sweptAt: () => Promise<number>;
  /** The version of the sweep's state row; `undefined` before the first pass. */
  readonly rowSchema: () => Promise<number | undefined>;
}

/** The checks of what the sweep has left in its state row. */
export function sweepReadingChecks(deps: CheckDeps & SweepStateReader): PartCheck[] {
  const { directory, resources, now } = deps;
  const { sweep } = relayFunctions(directory.mailroom);
  return [
    check(sweep.part, 'surroundings', async function* () {
      // A sweep whose schedule runs, but that has not completed a pass for longer than its interval allows.
      const found = await resources.function(sweep.name);
      const settings = found && settingsOf(readRelayConfig, found);
      const everyMs = typeof settings === 'object' ? settings.sweepEveryMs : 0;
      const silentMs = now - (await readWith(STATE_ACTIONS, deps.sweptAt));
      if (silentMs <= Math.max(STUCK_MS, 3 * everyMs)) return;
      const text = `the sweep has not completed a pass for ${duration(silentMs)}: events that the stream relay misses wait. The command shows its error`;
      yield { problem: 'sweep-silent', text, fix: ['npx', 'cdk-mailroom', 'sweep', '--since', '1h'] };
    }),
    ...versionChecks(deps),
  ];
}

/**
 * Stacks deployed with another version than the rows, or than this command. Rows have the version of the function that wrote them,
 * and each entry has the version with which its stack was deployed; an entry of version 0.1 or older has none, and is not checked.
 */
function versionChecks({
  directory: { mailroom, consumers },
  rowSchema,
}: CheckDeps & SweepStateReader): PartCheck[] {
  const entries = [{ ...mailroom, name: 'sweep' }, ...consumers];
  const newestOf = async () => {
    const written = (await readWith(STATE_ACTIONS, rowSchema)) ?? 1;
    return Math.max(written, ...entries.map(({ schema = 1 }) => schema));
  };
  return [
    ...entries.map(
      ({ name: part, schema, stack, stackPath }): PartCheck =>
        check(part, 'surroundings', async function* () {
          const newest = await newestOf();
          if (schema === undefined || schema >= newest) return;
          const text = `the stack ${stack} was deployed with a version that reads rows up to schema ${schema}, but rows of schema ${newest} exist: ${part} cannot read them`;
          yield { problem: 'older-version', text, fix: deployWords({ stack, stackPath }) };
        }),
    ),
    check('this machine', 'surroundings', async function* () {
      const newest = await newestOf();
      if (newest <= SCHEMA) return;
      const text = `rows of schema ${newest} exist, but this version of the command reads up to ${SCHEMA}: it reports them as unreadable`;
      yield { problem: 'newer-version', text, fix: ['npm', 'install', 'cdk-mailroom@latest'] };
    }),
  ];
}
