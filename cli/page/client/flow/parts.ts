import type { StatusDocument } from '../../server/protocol.ts';
import type { StateName } from '../frame/state-name.ts';

/** A trouble of a part of the flow, in a few words at the place where it is. The findings have the sentences. */
export interface PartTrouble {
  /** As in the findings: `table`, `stream relay`, `sweep`, `bus`, `heartbeat`, or the name of a consumer. */
  readonly part: string;
  readonly is: Extract<StateName, 'broken' | 'look'>;
  /** E.g. `Rule off`. */
  readonly text: string;
  /** True if events do not get as far as the part. */
  readonly isBefore: boolean;
}

type WiringKind = StatusDocument['wiring']['problems'][number]['problem'];

/** The problems that stop events, in a few words each. */
const PROBLEMS: Readonly<Partial<Record<WiringKind, string>>> = {
  'mapping-disabled': 'Mapping off',
  'mapping-filter': 'Mapping filters',
  paused: 'Paused',
  'no-mapping': 'No mapping',
  'concurrency-zero': 'Concurrency 0',
  'no-function': 'Function gone',
  'no-bus': 'Bus gone',
  'stream-off': 'Stream off',
  'no-queue': 'Queue gone',
  'no-entry': 'Directory entry gone',
  'no-rule': 'Rule gone',
  'rule-disabled': 'Rule off',
  pattern: 'Rule changed',
  target: 'Target changed',
};

/** The problems that stop an event before it reaches the queue of a consumer. */
const BEFORE: ReadonlySet<WiringKind> = new Set(['no-rule', 'rule-disabled', 'pattern', 'target']);

const LOOKS: Readonly<Record<StatusDocument['looks'][number]['look'], string>> = {
  failing: 'Every message fails',
  stalled: 'Claims nothing',
  crashing: 'Finishes nothing',
  missing: 'Events missing',
  behind: 'Behind',
};

/** The troubles of all parts, as the status has found them. */
export function troublesOf(status: StatusDocument): PartTrouble[] {
  const { wiring, looks, heartbeat } = status;
  return [
    ...wiring.problems.map(({ part, problem }) => ({
      part,
      is: problem === 'paused' ? ('look' as const) : ('broken' as const),
      text: PROBLEMS[problem] ?? 'Settings',
      isBefore: BEFORE.has(problem),
    })),
    ...looks.map(({ consumer, look }) => ({
      part: consumer,
      is: 'look' as const,
      text: LOOKS[look],
      isBefore: false,
    })),
    ...(heartbeat?.late ?? []).map(({ consumer }) => ({
      part: consumer,
      is: 'look' as const,
      text: 'Heartbeat late',
      isBefore: false,
    })),
    ...wiring.notChecked.flatMap(({ parts }) =>
      parts.map((part) => ({ part, is: 'look' as const, text: 'Not checked', isBefore: false })),
    ),
  ];
}

/** The worst trouble of some parts first. */
export function troublesAt(troubles: readonly PartTrouble[], ...parts: readonly string[]): PartTrouble[] {
  return troubles
    .filter(({ part }) => parts.includes(part))
    .sort((a, b) => Number(a.is === 'look') - Number(b.is === 'look'));
}

/** The number of dead letters of a consumer, in both of its queues. */
export function deadLettersOf({ deadLetterSources }: StatusDocument, consumer: string): number {
  return deadLetterSources
    .filter(({ source }) => source === `consumer:${consumer}` || source === `rule:${consumer}`)
    .reduce((sum, { count }) => sum + count, 0);
}
