import type { SteppedWorker } from './stepped-worker.ts';

/** What a schedule does at one point: a worker sends a statement or crashes, or time passes until leases are over. */
interface Choice {
  readonly worker: number;
  readonly does: 'step' | 'crash' | 'pass, step';
}

/** How often a schedule may do what makes it longer. */
export interface Bounds {
  /** Changes from one worker to the other; a crash is one, too. */
  readonly switches: number;
  readonly crashes: number;
  readonly passes: number;
}

/** One run of the workers from an empty database. */
export interface World {
  readonly workers: readonly SteppedWorker[];
  /** The number of statements that wait for the lock of another transaction. */
  waiting(): Promise<number>;
  /** Resolves when the state of a worker changes. */
  changed(): Promise<void>;
  pass(): Promise<void>;
  /** The violation that the run has left, after everything that is left was finished. */
  verdict(crashed: number | undefined): Promise<string | undefined>;
}

/**
 * Tries every schedule within the bounds, each from the beginning.
 *
 * @returns the number of schedules, and the first violation with its schedule
 */
export async function explore(
  open: () => Promise<World>,
  bounds: Bounds,
): Promise<{ readonly schedules: number; readonly violation?: string }> {
  const open_: Choice[][] = [[]];
  let schedules = 0;
  for (let prefix = open_.pop(); prefix !== undefined; prefix = open_.pop()) {
    const { taken, branches, violation } = await runOnce(await open(), prefix, bounds);
    schedules += 1;
    if (violation !== undefined) {
      const text = taken.map(({ worker, does }) => `${'ABC'[worker]} ${does}`).join('; ');
      return { schedules, violation: `${violation}: ${text}` };
    }
    open_.push(...branches);
  }
  return { schedules };
}

async function runOnce(world: World, prefix: readonly Choice[], bounds: Bounds) {
  const { workers } = world;
  const taken: Choice[] = [];
  const branches: Choice[][] = [];
  for (;;) {
    await settled(world);
    const choices = choicesAfter(workers, taken, bounds);
    const [first, ...others] = choices;
    if (first === undefined) break;
    const chosen = prefix[taken.length] ?? first;
    if (!choices.some(({ worker, does }) => worker === chosen.worker && does === chosen.does))
      throw new Error(`The schedule is not reproducible at ${taken.length}: ${JSON.stringify(taken)}`);
    if (taken.length >= prefix.length) branches.push(...others.map((other) => [...taken, other]));
    taken.push(chosen);
    const worker = workers[chosen.worker];
    if (chosen.does === 'pass, step') await world.pass();
    if (chosen.does === 'crash') await worker?.crash();
    else worker?.step();
  }
  const crash = taken.find(({ does }) => does === 'crash');
  return { taken, branches, violation: await world.verdict(crash?.worker) };
}

/** The worker that goes on comes first, so that a schedule without a prefix runs each worker to its end. */
function choicesAfter(
  workers: readonly SteppedWorker[],
  taken: readonly Choice[],
  { switches, crashes, passes }: Bounds,
): Choice[] {
  const last = taken.at(-1)?.worker ?? 0;
  const ready = workers.flatMap((worker, index) => (worker.state() === 'ready' ? [index] : []));
  const count = (does: Choice['does']) => taken.filter((choice) => choice.does === does).length;
  const mayPass = count('pass, step') < passes;
  const mayCrash = count('crash') < crashes;
  const goesOn = ready.includes(last);
  // A change that a worker has to make, because the other is done or waits for a lock, is not counted.
  const maySwitchAway = switchesIn(taken) < switches;
  const maySwitch = !goesOn || maySwitchAway;
  const others = maySwitch ? ready.filter((index) => index !== last) : [];
  return [
    ...(goesOn ? [{ worker: last, does: 'step' } as const] : []),
    ...others.flatMap((worker): Choice[] => [
      { worker, does: 'step' },
      // Time matters only to the worker that comes next.
      ...(mayPass ? [{ worker, does: 'pass, step' } as const] : []),
    ]),
    ...(mayCrash && goesOn && maySwitchAway ? [{ worker: last, does: 'crash' } as const] : []),
  ];
}

function switchesIn(taken: readonly Choice[]): number {
  const isSwitch = ({ worker, does }: Choice, index: number) =>
    does === 'crash' ||
    (index > 0 && worker !== taken[index - 1]?.worker && taken[index - 1]?.does !== 'crash');
  return taken.filter(isSwitch).length;
}

/** Most statements are answered by then, and the question who waits takes the server longer than they do. */
const ANSWERED_MS = 3;

/** Waits until each worker is ready or done, or waits for the lock of another one. */
async function settled({ workers, waiting, changed }: World): Promise<void> {
  const sent = () => workers.filter((worker) => worker.state() === 'sent').length;
  for (let before = sent(); before > 0; before = sent()) {
    if (await isWithin(ANSWERED_MS, changed())) continue;
    // A lock is that of a worker that is ready. Without one, the server has not yet counted a lock as released.
    const isHeld = workers.some((worker) => worker.state() === 'ready');
    if (isHeld && (await waiting()) === before && sent() === before) return;
  }
}

async function isWithin(ms: number, end: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, false);
  });
  try {
    return await Promise.race([end.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
