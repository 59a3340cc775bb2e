import type { StatusDocument } from '../../server/protocol.ts';
import type { StateName } from '../frame/format.ts';

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
export function troublesOf({ wiring, looks, heartbeat }: StatusDocument): PartTrouble[] {
  const look = (part: string, text: string): PartTrouble => ({ part, is: 'look', text, isBefore: false });
  return [
    ...wiring.problems.map(
      ({ part, problem }): PartTrouble => ({
        part,
        is: problem === 'paused' ? 'look' : 'broken',
        text: PROBLEMS[problem] ?? 'Settings',
        isBefore: BEFORE.has(problem),
      }),
    ),
    ...looks.map((found) => look(found.consumer, LOOKS[found.look])),
    ...(heartbeat?.late ?? []).map(({ consumer }) => look(consumer, 'Heartbeat late')),
    ...wiring.notChecked.flatMap(({ parts }) => parts.map((part) => look(part, 'Not checked'))),
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
