import { DOMAIN } from './alternatives/workload.ts';
import { CALL_MS } from './assumptions.ts';
import { PAYLOADS } from './cost/tables.ts';
import type { FigureTable, Part } from './part.ts';
import { PEER_TABLE, type PeerFigures, type PeerSettings, type PeerTask, REFUSED } from './peers/carried.ts';
import { installPlan, PEER_VERSION, withPeer } from './peers/packages.ts';
import type { ServedTables } from './peers/tables.child.ts';
import { runChild, startServer } from './processes.ts';
import { RELAY_CONFIG } from './relay/measured-relay.ts';

/** One row of the table: a system with its settings. */
interface PeerCase extends Pick<PeerTask, 'payloadBytes' | 'warmUp' | 'events' | 'roundMax'> {
  readonly system: string;
  /** The settings in words. */
  readonly settings: string;
  readonly peer?: Omit<PeerSettings, 'folder'>;
}

interface PeerFigure extends PeerFigures {
  readonly measured: PeerCase;
}

const PEER = `outbox-event-bus ${PEER_VERSION}`;

/** As its README advises for a higher throughput. */
const FASTER = { batchSize: 100, pollIntervalMs: 500 };

/** Turns off the buffer of the peer's publisher, which waits up to 100 ms for more events. */
const UNBUFFERED = { bufferSize: 1 };

/** Measures Mailroom and a published peer from the write to the bus, against the same tables and the same bus. */
export const peers: Part = {
  name: 'peers',
  title: 'a published outbox as it is, beside Mailroom; with --install',
  run: async ({ say, quick, install, packages }) => {
    if (!install) {
      for (const line of installPlan()) say(line);
      return { json: {}, tables: [] };
    }
    say(`installing ${PEER} in a temporary folder`);
    return withPeer(packages, async (folder) => {
      const figures: PeerFigure[] = [];
      for (const each of peerCases()) {
        const measured = quick ? { ...each, warmUp: 2, events: 4 } : each;
        const figure = { measured, ...(await measure(measured, folder)) };
        figures.push(figure);
        const { system, settings, payloadBytes } = measured;
        say(
          `${system}, ${settings}, ${payloadBytes} B: ${round(figure.eventsPerSecond, 1)} events per second`,
        );
      }
      return { json: { peers: figures.map(figureRecord) }, tables: [peersTable(figures)] };
    });
  },
};

/** The measured cases, in the order of the table. */
function peerCases(): PeerCase[] {
  const mailroom = { system: 'Mailroom', settings: 'defaults', warmUp: 1_000, events: 2_000, roundMax: 200 };
  const defaults = { workers: 1, outbox: {}, publisher: {} };
  const peer = (settings: string, events: number, payloadBytes: number, chosen: typeof defaults) => {
    return {
      system: PEER,
      settings,
      payloadBytes,
      warmUp: events / 2,
      events,
      roundMax: 1_000,
      peer: chosen,
    };
  };
  const unbuffered = { workers: 1, outbox: FASTER, publisher: UNBUFFERED };
  return [
    ...PAYLOADS.flatMap((bytes) => [
      { ...mailroom, payloadBytes: bytes },
      peer('defaults', 100, bytes, defaults),
    ]),
    peer('batchSize 100, pollIntervalMs 500', 100, 1_024, { ...defaults, outbox: FASTER }),
    peer('the same, bufferSize 1', 600, 1_024, unbuffered),
    peer('the same, 8 workers', 600, 1_024, { ...unbuffered, workers: 8 }),
  ];
}

/** Runs one case in fresh processes: one with the tables and the bus, and one that is measured. */
async function measure({ peer, ...measured }: PeerCase, folder: string): Promise<PeerFigures> {
  const tables: ServedTables = {
    tables: [DOMAIN, PEER_TABLE, { name: RELAY_CONFIG.tableName, keys: ['PK', 'SK'] }],
  };
  const server = await startServer('peers/tables', tables);
  try {
    const task: PeerTask = { ...measured, ...(peer && { peer: { ...peer, folder } }) };
    const program = peer === undefined ? 'peers/mailroom' : 'peers/outbox-event-bus';
    return await runChild<PeerFigures>(program, server.endpoint, task);
  } finally {
    await server.stop();
  }
}

function peersTable(figures: readonly PeerFigure[]): FigureTable {
  const counts = ['write units', 'read units', 'DynamoDB calls', 'PutEvents calls'];
  return {
    name: 'peers',
    title: `From a service's transaction to the bus, per event; every call answers after ${CALL_MS} ms`,
    head: [
      ...['system', 'settings', 'payload, B', ...counts, 'events per second', 'CPU ms'],
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

function figureRecord({ measured, ...figures }: PeerFigure) {
  const { system, settings, payloadBytes, events, peer } = measured;
  const values = Object.entries(figures).map(([name, value]) => [name, round(value, 4)] as const);
  return {
    ...{ system, settings, payloadBytes, events },
    ...(peer && { version: PEER_VERSION, ...peer }),
    ...Object.fromEntries(values),
  };
}

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
