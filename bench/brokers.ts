import { chunks } from './alternatives/queue-delivery.ts';
import type { BrokerPlace } from './brokers/broker-link.ts';
import type { CourierResult, CourierTask, CourierTurn } from './brokers/courier.child.ts';
import { linkTo } from './brokers/link.ts';
import { newOrders, TOGETHER } from './brokers/orders.ts';
import { BROKERS, type RunningBroker } from './brokers/running-brokers.ts';
import type { FigureTable, Part, PartSettings } from './part.ts';
import { startChild } from './processes.ts';

type Direction = CourierTurn['direction'];
type CourierSystem = CourierTask['with'];

/** The events per second to or from a broker, and what one takes of a processor, ms. */
interface BrokerFigure {
  /** `none`: a bridge to nothing, or an inbox without a source. */
  readonly broker: BrokerPlace['broker'] | 'none';
  readonly direction: Direction;
  /** With the library alone; absent without a broker, like its other members. */
  readonly plainPerSecond?: number;
  readonly mailroomPerSecond: number;
  readonly ratio?: number;
  readonly plainCpuMs?: number;
  readonly mailroomCpuMs: number;
}

interface BrokerSizes {
  readonly rounds: number;
  readonly warmUp: number;
  readonly events: number;
}

/** Measures bridges and consumers of real brokers beside plain uses of the same libraries. */
export const brokers: Part = {
  name: 'brokers',
  title: 'bridges to brokers and consumers of them, beside their libraries alone; with --install',
  run: async (settings) => {
    const sizes = settings.quick ? QUICK : FULL;
    const figures = await measure('none', undefined, sizes, settings);
    for (const { broker, whyNot, start } of BROKERS) {
      const missing = settings.install ? await whyNot() : '--install downloads and starts it, without root';
      if (missing !== undefined) {
        settings.say(`${broker} is not measured: ${missing}`);
        continue;
      }
      const running = await start();
      try {
        figures.push(...(await measure(broker, running, sizes, settings)));
      } finally {
        await running.close();
      }
    }
    return { json: { brokers: figures }, tables: [figureTable('out', figures), figureTable('in', figures)] };
  },
};

const FULL: BrokerSizes = { rounds: 5, warmUp: 500, events: 3_000 };
const QUICK: BrokerSizes = { rounds: 1, warmUp: 10, events: 40 };

/** A process, and what it uses. */
interface Courier {
  readonly system: CourierSystem;
  readonly child: Awaited<ReturnType<typeof startChild>>;
}

/** Measures in turns: whatever else uses the processors slows down all alike, so that the ratio can be compared. */
async function measure(
  broker: BrokerFigure['broker'],
  running: RunningBroker | undefined,
  sizes: BrokerSizes,
  { say }: PartSettings,
): Promise<BrokerFigure[]> {
  const systems: CourierSystem[] = running === undefined ? ['mailroom'] : ['plain', 'mailroom'];
  const processes = await Promise.all(
    systems.map(async (system) => {
      const task: CourierTask = { with: system };
      return { system, child: await startChild('brokers/courier', '', task) };
    }),
  );
  try {
    const figures: BrokerFigure[] = [];
    for (const direction of ['out', 'in'] as const) {
      const turns = await inTurns(processes, direction, running, sizes);
      const figure = figureOf(broker, direction, turns, sizes.events);
      figures.push(figure);
      const { mailroomPerSecond, plainPerSecond } = figure;
      const beside = plainPerSecond === undefined ? '' : `, the library alone ${plainPerSecond}`;
      say(`${broker}, ${direction}: ${mailroomPerSecond} events per second${beside}`);
    }
    return figures;
  } finally {
    // Also one that still measures when another has failed.
    for (const { child } of processes) await child.stop();
  }
}

async function inTurns(
  processes: readonly Courier[],
  direction: Direction,
  running: RunningBroker | undefined,
  { rounds, warmUp, events }: BrokerSizes,
): Promise<Record<CourierSystem, CourierResult[]>> {
  const turns: Record<CourierSystem, CourierResult[]> = { plain: [], mailroom: [] };
  // The first round of each is its warm-up.
  for (let round = 0; round <= rounds; round += 1) {
    for (const { system, child } of processes) {
      const name = `${direction}-${system}-${round}`;
      const carried = await inPlace(running, { direction, warmUp, events }, name, child.ask<CourierResult>);
      if (round > 0) turns[system].push(carried);
    }
  }
  return turns;
}

/** Runs a turn on a new stream, queue or topic, which is filled before if it is consumed. */
async function inPlace(
  running: RunningBroker | undefined,
  turn: CourierTurn,
  name: string,
  run: (turn: CourierTurn) => Promise<CourierResult>,
): Promise<CourierResult> {
  if (running === undefined) return run(turn);
  const place = await running.create(name);
  const count = turn.warmUp + turn.events;
  if (turn.direction === 'in') await fill(place, count);
  const carried = await run({ ...turn, place });
  const stored = await running.stored(name);
  if (turn.direction === 'out' && stored !== count)
    throw new Error(`${name} has ${stored} of ${count} events`);
  await running.remove(name);
  return carried;
}

async function fill(place: BrokerPlace, count: number): Promise<void> {
  const { send, close } = await linkTo(place).sender();
  for (const messages of chunks(await newOrders(count), 10 * TOGETHER)) await send(messages);
  await close();
}

function figureOf(
  broker: BrokerFigure['broker'],
  direction: Direction,
  turns: Readonly<Record<CourierSystem, readonly CourierResult[]>>,
  events: number,
): BrokerFigure {
  const { perSecond: mailroomPerSecond, cpuMs: mailroomCpuMs } = medians(turns.mailroom, events);
  if (turns.plain.length === 0) return { broker, direction, mailroomPerSecond, mailroomCpuMs };
  const { perSecond: plainPerSecond, cpuMs: plainCpuMs } = medians(turns.plain, events);
  const ratio = Number((mailroomPerSecond / plainPerSecond).toPrecision(2));
  return { broker, direction, plainPerSecond, mailroomPerSecond, ratio, plainCpuMs, mailroomCpuMs };
}

function medians(turns: readonly CourierResult[], events: number) {
  const perSecond = Math.round(median(turns.map(({ ms }) => (events / ms) * 1_000)));
  return { perSecond, cpuMs: Number(median(turns.map(({ cpuMs }) => cpuMs / events)).toFixed(3)) };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

const NAMES: Readonly<Record<Direction, Readonly<Record<CourierSystem | 'none', string>>>> = {
  out: { plain: 'the library alone', mailroom: 'the bridge', none: 'nothing' },
  in: { plain: 'the library alone', mailroom: 'the loop', none: 'calls of `process`' },
};

function figureTable(direction: Direction, figures: readonly BrokerFigure[]): FigureTable {
  const { plain, mailroom, none } = NAMES[direction];
  return {
    name: `brokers-${direction}`,
    title: `${direction === 'out' ? 'To a broker' : 'From a broker'}, events per second and CPU ms of an event in one process; Mailroom's table in memory`,
    head: [
      direction === 'out' ? 'to' : 'from',
      plain,
      mailroom,
      'ratio',
      `CPU ms, ${plain}`,
      `CPU ms, ${mailroom}`,
    ],
    rows: figures
      .filter((figure) => figure.direction === direction)
      .map(
        ({ broker, plainPerSecond = '', mailroomPerSecond, ratio = '', plainCpuMs = '', mailroomCpuMs }) => [
          broker === 'none' ? none : broker,
          plainPerSecond,
          mailroomPerSecond,
          ratio,
          plainCpuMs,
          mailroomCpuMs,
        ],
      ),
  };
}
