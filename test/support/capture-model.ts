/** The unit of time in the model: a quarter of the retention of captured events. */
export const UNITS_PER_RETENTION = 4;

/** The row of a connector in `mailroom.capture`, as one kind of database has it. Times are units of the model. */
type CaptureRow = Readonly<Record<string, number | null>>;

/** The state from which a heartbeat runs. Times are relative to its own, so that equal heartbeats are run once. */
export interface Beat {
  /** The times of the events that the table has. */
  readonly events: readonly number[];
  readonly row: CaptureRow | undefined;
  /** The events that the log has, and those of them that the connector has confirmed. */
  readonly written: number;
  readonly confirmed: number;
}

/** The state that a heartbeat leaves. */
export type Beaten = Pick<Beat, 'events' | 'row'>;

/** A database whose retention is explored. */
export interface ExploredRetention {
  /** Runs one heartbeat from its state. */
  readonly beat: (beat: Beat) => Promise<Beaten>;
  /** It knows what a connector has confirmed, so one that runs may lag. */
  readonly mayLag: boolean;
}

/** The bounds of an exploration. */
export interface CaptureBounds {
  readonly events: number;
  readonly stops: number;
  readonly losses: number;
  readonly until: number;
}

/** The state of a producer, a connector and a database. Events are numbered in the order of their commits. */
interface State {
  readonly now: number;
  /** The times of the commits. */
  readonly log: readonly number[];
  readonly stored: readonly number[];
  readonly delivered: readonly number[];
  readonly confirmed: number;
  readonly isRunning: boolean;
  /** It has beaten at this time: one that runs beats far more often than a unit. */
  readonly hasBeaten: boolean;
  /** The log before its position is gone, also at its first start: it needs a snapshot. */
  readonly isLost: boolean;
  /** The time of the first start since. The snapshot ends within half of a retention. */
  readonly snapshotSince?: number | undefined;
  readonly stops: number;
  readonly losses: number;
  readonly row?: CaptureRow | undefined;
}

const START: State = {
  ...{ now: 0, log: [], stored: [], delivered: [], confirmed: 0 },
  ...{ isRunning: false, hasBeaten: false, isLost: true, stops: 0, losses: 0 },
};

/**
 * Tries every order of what a producer, a connector and time do, from each state once: commits, starts and stops, messages that were sent without a stored position, the loss of
 * the log while the connector is stopped, snapshots, and heartbeats, which the real database runs.
 *
 * @returns the number of states, and the way to the first event that is deleted before it was delivered and is not in the log any more
 */
export async function exploreCapture(
  explored: ExploredRetention,
  bounds: CaptureBounds,
): Promise<{ readonly states: number; readonly violation?: string }> {
  const beat = onceEach(explored);
  const seen = new Set([JSON.stringify(START)]);
  let open: { readonly state: State; readonly way: readonly string[] }[] = [{ state: START, way: [] }];
  while (open.length > 0) {
    const next: typeof open = [];
    for (const { state, way } of open)
      for (const [what, after] of await stepsFrom(state, { ...explored, beat }, bounds)) {
        const key = JSON.stringify(after);
        if (seen.has(key)) continue;
        seen.add(key);
        const path = [...way, what];
        if (isLostIn(after)) return { states: seen.size, violation: path.join(', ') };
        next.push({ state: after, way: path });
      }
    open = next;
  }
  return { states: seen.size };
}

/** An event that was not delivered is neither in the log that is left nor in the table, which a snapshot reads. */
function isLostIn({ log, stored, delivered, isLost }: State): boolean {
  return isLost && log.some((_at, event) => !delivered.includes(event) && !stored.includes(event));
}

async function stepsFrom(
  state: State,
  { beat, mayLag }: ExploredRetention,
  bounds: CaptureBounds,
): Promise<[string, State][]> {
  const { now, log, isRunning, isLost, snapshotSince } = state;
  const half = UNITS_PER_RETENTION / 2;
  const steps: [string, State][] = [];
  if (log.length < bounds.events)
    steps.push(['commit', { ...state, log: [...log, now], stored: [...state.stored, log.length] }]);
  const isInTime = snapshotSince === undefined || now + 1 < snapshotSince + half;
  if (now < bounds.until && isInTime && (state.hasBeaten || !isRunning))
    steps.push(['pass', { ...state, now: now + 1, hasBeaten: false }]);
  if (!isRunning) steps.push(['start', { ...state, isRunning: true, ...(isLost && started(state)) }]);
  if (!isRunning && !isLost && state.losses < bounds.losses)
    steps.push(['lose the log', { ...state, isLost: true, losses: state.losses + 1 }]);
  if (!isRunning) return steps;
  if (state.stops < bounds.stops)
    steps.push(['stop', { ...state, isRunning: false, stops: state.stops + 1 }]);
  if (isLost) {
    steps.push(['beat in the snapshot', await beaten(state, beat)]);
    const delivered = union(state.delivered, state.stored);
    steps.push(['end the snapshot', { ...state, delivered, isLost: false, snapshotSince: undefined }]);
    return steps;
  }
  const read = { ...state, delivered: log.map((_at, event) => event) };
  if (read.delivered.length > state.delivered.length) steps.push(['send', read]);
  steps.push(['read and beat', await beaten({ ...read, confirmed: log.length }, beat)]);
  if (mayLag) steps.push(['beat', await beaten(state, beat)]);
  return steps;
}

/** A connector without a position begins at the end of the log; what is older is in its snapshot. */
function started({ snapshotSince, now, log }: State): Partial<State> {
  return snapshotSince === undefined ? { snapshotSince: now, confirmed: log.length } : {};
}

function union(a: readonly number[], b: readonly number[]): number[] {
  return [...new Set([...a, ...b])].toSorted((x, y) => x - y);
}

async function beaten(state: State, beat: ExploredRetention['beat']): Promise<State> {
  const { now, log, stored, row, confirmed } = state;
  const times = stored.map((event) => (log[event] ?? 0) - now);
  const after = await beat({ events: times, row: moved(row, -now), written: log.length, confirmed });
  // Events are deleted from the oldest on, and those of one time together.
  const left = stored.filter((event) => after.events.includes((log[event] ?? 0) - now));
  return { ...state, stored: left, row: moved(after.row, now), hasBeaten: true };
}

const POSITION = 'lsn';

/** The row with its times moved. A position in the log is not a time. */
function moved(row: CaptureRow | undefined, by: number): CaptureRow | undefined {
  if (row === undefined) return undefined;
  const entries = Object.entries(row).map(([name, value]) => [
    name,
    value === null || name === POSITION ? value : value + by,
  ]);
  return Object.fromEntries(entries);
}

/** Equal heartbeats have equal results. */
function onceEach({ beat }: ExploredRetention): ExploredRetention['beat'] {
  const known = new Map<string, Promise<Beaten>>();
  return (one) => {
    const key = JSON.stringify(one);
    const result = known.get(key) ?? beat(one);
    known.set(key, result);
    return result;
  };
}
