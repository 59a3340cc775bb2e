/** What a run of the scenarios can be told. */
export interface Settings {
  /** How many orders `spike` places. */
  readonly spikeOrders: number;
  /** The seed of `worker-kill` and of the killed databases: the same seed draws the same calls. */
  readonly seed: number;
}

/** The default settings of a run. */
export const DEFAULT_SETTINGS: Settings = { spikeOrders: 2_000, seed: 1 };
