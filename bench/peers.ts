import { DOMAIN } from './alternatives/workload.ts';
import { CALL_MS } from './assumptions.ts';
import { PAYLOADS } from './cost/tables.ts';
import type { FigureTable, Part } from './part.ts';
import { PEER_TABLE, type PeerFigures, type PeerSettings, type PeerTask, REFUSED } from './peers/carried.ts';
import { installPlan, PEER_VERSION, withPeer } from './peers/packages.ts';
import type { ServedTables } from './peers/tables.child.ts';
import { RELAY_CONFIG } from './relay/events.ts';
import { runChild, startServer } from './relay/processes.ts';

/** One row of the table: a system with its settings. */
interface PeerCase {
  readonly system: string;
  /** The settings in words. */
  readonly settings: string;
  readonly payloadBytes: number;
  readonly warmUp: number;
  readonly events: number;
  readonly roundMax: number;
  readonly peer?: Omit<PeerSettings, 'folder'>;
}

interface PeerFigure extends PeerFigures {
  readonly measured: PeerCase;
}

const PEER = `outbox-event-bus ${PEER_VERSION}`;

/** The payload with which settings are compared. */
const PAYLOAD_BYTES = 1_024;

const DEFAULTS = { workers: 1, outbox: {}, publisher: {} };

/** As its README advises for a higher throughput. */
const FASTER_POLLS = { batchSize: 100, pollIntervalMs: 500 };

/** Further settings of the peer. `bufferSize: 1` turns off its publisher's buffer, which waits up to 100 ms for more events. */
const SETTINGS: readonly (Pick<PeerCase, 'settings' | 'events'> & { readonly peer: typeof DEFAULTS })[] = [
  {
    settings: 'batchSize 100, pollIntervalMs 500',
    events: 100,
    peer: { ...DEFAULTS, outbox: FASTER_POLLS },
  },
  {
    settings: 'the same, bufferSize 1',
    events: 600,
    peer: { ...DEFAULTS, outbox: FASTER_POLLS, publisher: { bufferSize: 1 } },
  },
  {
    settings: 'the same, 8 workers',
    events: 600,
    peer: { workers: 8, outbox: FASTER_POLLS, publisher: { bufferSize: 1 } },
  },
];

/** Measures Mailroom and a published peer from the write to the bus, against the same tables and the same bus. */
export const peers: Part = {
  name: 'peers',
  title: 'a published outbox as it is, beside Mailroom; with --install',
  run: async ({ say, quick, install, packages }) => {
    if (!install) {
      for (const line of await installPlan()) say(line);
      return { json: {}, tables: [] };
    }
    say(`installing ${PEER} in a temporary folder`);
    return withPeer(packages, async (folder) => {
      const figures: PeerFigure[] = [];
      for (const measured of quick ? peerCases().map(quickCase) : peerCases()) {
        const figure = { measured, ...(await measure(measured, folder)) };
        figures.push(figure);
        say(`${caseName(measured)}: ${round(figure.eventsPerSecond, 1)} events per second`);
      }
      return { json: { peers: figures.map(asJson) }, tables: [peersTable(figures)] };
    });
  },
};

/** The measured cases, in the order of the table. */
function peerCases(): PeerCase[] {
  const mailroom = { system: 'Mailroom', settings: 'defaults', warmUp: 1_000, events: 2_000, roundMax: 200 };
  const peer = {
    system: PEER,
    settings: 'defaults',
    peer: DEFAULTS,
    warmUp: 50,
    events: 100,
    roundMax: 1_000,
  };
  return [
    ...PAYLOADS.flatMap((payloadBytes) => [
      { ...mailroom, payloadBytes },
      { ...peer, payloadBytes },
    ]),
    ...SETTINGS.map((settings) => ({
      ...peer,
      ...settings,
      payloadBytes: PAYLOAD_BYTES,
      warmUp: settings.events / 2,
    })),
  ];
}

function quickCase(measured: PeerCase): PeerCase {
  return { ...measured, warmUp: 2, events: 4 };
}

/** Runs one case in fresh processes: one with the tables and the bus, and one that is measured. */
async function measure(
  { payloadBytes, warmUp, events, roundMax, peer }: PeerCase,
  folder: string,
): Promise<PeerFigures> {
  const tables: ServedTables = {
    tables: [DOMAIN, PEER_TABLE, { name: RELAY_CONFIG.tableName, keys: ['PK', 'SK'] }],
  };
  const server = await startServer('../peers/tables', tables);
  try {
    const task: PeerTask = {
      payloadBytes,
      warmUp,
      events,
      roundMax,
      ...(peer && { peer: { ...peer, folder } }),
    };
    const name = peer === undefined ? '../peers/mailroom' : '../peers/outbox-event-bus';
    return await runChild<PeerFigures>(name, server.endpoint, task);
  } finally {
    await server.stop();
  }
}

function peersTable(figures: readonly PeerFigure[]): FigureTable {
  return {
    name: 'peers',
    title: `From a service's transaction to the bus, per event; every call answers after ${CALL_MS} ms`,
    head: [
      'system',
      'settings',
      'payload, B',
      'write units',
      'read units',
      'DynamoDB calls',
      'PutEvents calls',
      'events per second',
      'CPU ms',
      `lost of ${REFUSED} refused`,
    ],
    rows: figures.map(({ measured, ...figure }) => [
      measured.system,
      measured.settings,
      measured.payloadBytes,
      round(figure.writeUnits, 2),
      round(figure.readUnits, 2),
      round(figure.dynamodbCalls, 2),
      round(figure.busCalls, 2),
      round(figure.eventsPerSecond, figure.eventsPerSecond < 100 ? 1 : 0),
      round(figure.cpuMsPerEvent, 2),
      figure.lost,
    ]),
  };
}

function asJson({ measured, ...figures }: PeerFigure) {
  const { peer, warmUp: _, roundMax: __, ...rest } = measured;
  const named = { ...rest, ...(peer && { version: PEER_VERSION, ...peer }) };
  const values = Object.entries(figures).map(([name, value]) => [name, round(value, 4)] as const);
  return { ...named, ...Object.fromEntries(values) };
}

function caseName({ system, settings, payloadBytes }: PeerCase): string {
  return `${system}, ${settings}, ${payloadBytes} B`;
}

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
