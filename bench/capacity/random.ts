/** Numbers from 0 (inclusive) to 1 (exclusive). */
export type Random = () => number;

/** Random numbers that are the same for the same seed: a counter, scrambled. */
export function createRandom(seed: number): Random {
  let count = 0;
  return () => {
    count = (count + 1) | 0;
    return scramble(count, seed) / 2 ** 32;
  };
}

/** A whole number from 0 to 2^32 - 1 that looks random and depends on nothing but these two. */
export function scramble(value: number, seed: number): number {
  let mixed = Math.imul(value ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(seed + 0x7f4a7c15, 0xc2b2ae35);
  for (let round = 0; round < 3; round += 1) {
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x7feb352d);
    mixed ^= mixed >>> 15;
  }
  return mixed >>> 0;
}

/** How many arrive in a step in which so many arrive on average. */
export function poisson(mean: number, random: Random): number {
  // Above this, the normal distribution is close enough, and the product below would take long.
  if (mean > 50) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal(random)));
  const limit = Math.exp(-mean);
  let count = 0;
  for (let product = random(); product > limit; product *= random()) count += 1;
  return count;
}

/** Box and Muller's way to a normally distributed number. */
function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
