import { type ExplorationReport, exploreScenario } from '../../testing/explorer/exploration.ts';
import { type Round, scenariosOf } from './rounds.ts';

/** What a walker is told to do: one scenario in one round. */
export interface Walk {
  readonly round: Round;
  readonly scenario: string;
}

/** What a walker found, as it can be sent. */
export interface Walked extends Omit<ExplorationReport, 'crashPoints'> {
  readonly crashPoints: readonly string[];
}

/** What a walker says: how far it is, or what it found. */
export type WalkMessage =
  | { readonly kind: 'progress'; readonly schedules: number }
  | { readonly kind: 'done'; readonly report: Walked };

// A process of its own, so that as many scenarios are walked at once as there are cores.
process.once('message', (walk: Walk) => {
  void walkScenario(walk);
});

async function walkScenario({ round, scenario: name }: Walk): Promise<void> {
  const tell = (message: WalkMessage) => process.send?.(message);
  const scenario = scenariosOf(round).find((candidate) => candidate.name === name);
  if (scenario === undefined) throw new Error(`There is no scenario "${name}"`);
  const report = await exploreScenario(scenario, {
    deviationsMax: round.deviations,
    onProgress: (schedules) => tell({ kind: 'progress', schedules }),
  });
  tell({ kind: 'done', report: { ...report, crashPoints: [...report.crashPoints] } });
  process.disconnect();
}
