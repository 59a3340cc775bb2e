import type { BusFault } from '../../../lambdas/runtime/operations/bus-consumers.ts';
import { READ_ACTIONS, type Resources } from '../../deployment/resources.ts';
import { clockCheck, concurrencyLeftCheck } from './account-checks.ts';
import { alarmCheck } from './alarm-checks.ts';
import { type CheckDeps, LEVELS, type Level, type PartCheck, readWith } from './check.ts';
import { consumerChecks } from './consumer-checks.ts';
import { databaseChecks } from './database-checks.ts';
import { busFaultChecks, unlistedChecks } from './entry-checks.ts';
import { producerChecks } from './producer-checks.ts';
import { relationChecks } from './relation-checks.ts';
import { relayChecks, versionChecks } from './relay-checks.ts';
import { type RoleSimulator, roleChecks } from './role-checks.ts';

/** Dependencies of {@link allChecks}. */
export interface AllCheckDeps extends CheckDeps {
  /** The version of the sweep's state row; `undefined` before the first pass. */
  readonly rowSchema: () => Promise<number | undefined>;
  /** The least by which this machine's clock is ahead of AWS's, milliseconds; negative if it is behind. */
  readonly machineAheadMs: number;
  /** `local`: the endpoint is a local engine, which checks no policies. */
  readonly roles: RoleSimulator | 'local';
  /** The parameters of other owners on the bus that cannot be used. @default none */
  readonly faults?: readonly BusFault[] | undefined;
}

/** The checks that events pass each part, in the order in which an event passes them. */
export function flowChecks(deps: CheckDeps): PartCheck[] {
  const reading = { ...deps, resources: readOnce(deps.resources) };
  return partChecks(reading).filter(({ level }) => level === 'flow');
}

function partChecks(reading: CheckDeps): PartCheck[] {
  return [
    ...unlistedChecks(reading),
    ...relayChecks(reading),
    ...databaseChecks(reading.database, () => reading.now),
    ...reading.directory.consumers.flatMap((consumer) => consumerChecks(reading, consumer)),
  ];
}

/** The checks of every level. */
export function allChecks(deps: AllCheckDeps): PartCheck[] {
  const reading = { ...deps, resources: readOnce(deps.resources) };
  return [
    ...byLevel(partChecks(reading)),
    ...versionChecks(reading, deps.rowSchema),
    ...relationChecks(reading),
    ...producerChecks(reading),
    concurrencyLeftCheck(reading),
    alarmCheck(reading),
    clockCheck(deps.machineAheadMs),
    ...busFaultChecks(deps.faults ?? []),
    ...(typeof deps.roles === 'string' ? [] : roleChecks(reading, deps.roles)),
  ];
}

/** Sorts by level, those of the flow first. */
export function byLevel<T extends { readonly level: Level }>(items: readonly T[]): T[] {
  return LEVELS.flatMap((level) => items.filter((item) => item.level === level));
}

/** The resources, each read once for all checks. A refused read names the actions that it needs. */
function readOnce(resources: Resources): Resources {
  const known = new Map<string, unknown>();
  const entries = Object.entries(resources).map(([name, read]: [string, (...of: string[]) => unknown]) => {
    const actions = READ_ACTIONS[name as keyof Resources];
    const once = (...of: string[]) => {
      const key = JSON.stringify([name, ...of]);
      if (!known.has(key))
        known.set(
          key,
          readWith(actions, async () => read(...of)),
        );
      return known.get(key);
    };
    return [name, once] as const;
  });
  return Object.fromEntries(entries) as unknown as Resources;
}
