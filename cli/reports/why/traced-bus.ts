import { errorCode, errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import { brokenNeighbors, withNeighbors } from '../../../lambdas/runtime/operations/bus-consumers.ts';
import type { BusDirectory } from '../../../lambdas/runtime/operations/bus-directory.ts';
import type { Directory } from '../../../lambdas/runtime/operations/directory.ts';
import type { BrokenDirectory } from '../../../lambdas/runtime/operations/directory-reader.ts';
import type { Table } from '../../../lambdas/runtime/store/table.ts';
import { readSweepState } from '../../deployment/rows-reader.ts';
import type { StoredRows } from '../../deployment/stored-rows.ts';

/** A Mailroom whose rows a trace reads. */
interface TracedMailroom {
  readonly directory: Directory;
  readonly table: Table;
  readonly stored: StoredRows;
}

/** A Mailroom, and the others on its bus. */
export interface BusDeps extends TracedMailroom {
  /** The other Mailrooms on its bus. @default none */
  readonly neighbors?: readonly TracedMailroom[] | undefined;
  /** The Mailrooms of the region whose entry cannot be used. @default none */
  readonly broken?: readonly BrokenDirectory[] | undefined;
  /** Reads the claims on its bus. @default they are not read */
  readonly claims?: (() => Promise<BusDirectory | undefined>) | undefined;
}

/** The Mailrooms of a bus whose rows a trace reads. */
export interface OpenBus {
  /** That of the selected Mailroom, with the consumers of the others. */
  readonly directory: Directory;
  /** The Mailroom of a consumer, or that of an event's outbox row. @param table - absent: the selected one */
  room(table: string | undefined): ReadRoom;
  /** Finds what only one Mailroom of the bus has, the selected one first. */
  first<T>(
    read: (room: ReadRoom) => Promise<T | undefined>,
  ): Promise<{ readonly found?: T; readonly elsewhere?: string }>;
  /** The Mailrooms that cannot be read. */
  readonly closed: readonly ClosedRoom[];
  /** The consumers on the bus that cannot be read, each with the reason. */
  readonly unread: Set<string>;
}

/** A Mailroom whose rows can be read. */
export interface ReadRoom extends TracedMailroom {
  readonly shards: readonly number[];
}

/** A Mailroom whose table could not be read. */
interface ClosedRoom {
  readonly directory: Directory;
  readonly why: string;
}

/** Opens the Mailrooms of the bus. One that cannot be read is left out, and named. */
export async function openBus(deps: BusDeps): Promise<OpenBus> {
  const { neighbors = [], claims } = deps;
  const open = async ({ directory, table, stored }: TracedMailroom): Promise<ReadRoom> => ({
    directory,
    table,
    stored,
    shards: (await readSweepState(directory, table)).shards,
  });
  const closed: ClosedRoom[] = [];
  const rooms = [await open(deps)];
  for (const room of neighbors) {
    try {
      rooms.push(await open(room));
    } catch (error) {
      closed.push({ directory: room.directory, why: `${errorCode(error)}: ${errorMessage(error)}` });
    }
  }
  const directories = neighbors.map(({ directory }) => directory);
  const onBus = await claims?.();
  const { unlisted = [] } = withNeighbors(deps.directory, directories, onBus);
  // Those of the selected Mailroom are a finding of its wiring.
  const own = new Set(deps.directory.unlisted?.map(({ name }) => name));
  const foreign = unlisted.filter(({ name }) => !own.has(name));
  return {
    directory: withNeighbors(
      deps.directory,
      rooms.slice(1).map(({ directory }) => directory),
    ),
    room: (table) => {
      const room = table === undefined ? rooms[0] : rooms.find((one) => tableOf(one) === table);
      if (room === undefined) throw new Error(`No Mailroom with the table ${table} was read`);
      return room;
    },
    first: async (read) => {
      for (const room of rooms) {
        const found = await read(room);
        if (found !== undefined) return { found, ...(room !== rooms[0] && { elsewhere: tableOf(room) }) };
      }
      return {};
    },
    closed,
    unread: new Set([
      ...foreign.map(
        ({ name, parameter, fault }) =>
          `${name}, whose entry ${parameter} ${fault === undefined ? 'does not exist' : 'cannot be used'}`,
      ),
      ...brokenNeighbors(deps, onBus).map(
        ({ table, parameter }) => `the consumers of ${table}, whose entry ${parameter} cannot be used`,
      ),
    ]),
  };
}

function tableOf({ directory }: TracedMailroom): string {
  return directory.mailroom.table;
}
