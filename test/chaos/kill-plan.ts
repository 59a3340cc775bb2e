/** When a process is killed: at which of its function's calls, and on which side of what the engine does for it. */
export interface Kill {
  /** Counted over all processes of the function, from 1. */
  readonly atCall: number;
  readonly moment: 'before' | 'after';
}

/** What {@link drawKills} draws from. */
export interface Lots<Victim extends string> {
  readonly seed: number;
  /** Among how many first calls those of each function are drawn. */
  readonly victims: Readonly<Partial<Record<Victim, number>>>;
  /** How many are drawn for each. */
  readonly each: number;
}

/** Draws who is killed and when. The same seed draws the same. */
export function drawKills<Victim extends string>({
  seed,
  victims,
  each,
}: Lots<Victim>): ReadonlyMap<Victim, readonly Kill[]> {
  const random = randomNumbers(seed);
  const plans = new Map<Victim, readonly Kill[]>();
  for (const [victim, calls] of Object.entries(victims) as [Victim, number][]) {
    const drawn = new Map<number, Kill>();
    while (drawn.size < Math.min(each, calls)) {
      const atCall = 1 + Math.floor(random() * calls);
      drawn.set(atCall, { atCall, moment: random() < 0.5 ? 'before' : 'after' });
    }
    plans.set(
      victim,
      [...drawn.values()].toSorted((a, b) => a.atCall - b.atCall),
    );
  }
  return plans;
}

/** Numbers from 0 to 1 that look random, the same ones for the same seed: a Weyl sequence, well mixed. */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
  };
}
