import { COUNTS_LAG_MS } from '../../../../lambdas/runtime/base/patience.ts';
import { isOpen, problemState, warningState } from '../../../reports/findings/finding-counts.ts';
import { deadLetterSourcesOf, deadLettersOf } from '../../../reports/status/consumer-dead-letters.ts';
import type { StatusDocument } from '../../server/protocol.ts';
import { count, many, type StateName, WORST_FIRST } from '../frame/format.ts';
import { routeTo } from '../frame/route.ts';

/** A trouble of a part of the flow, in a few words at the place where it is. The findings have the sentences. */
export interface PartTrouble {
  /** As in the findings: `table`, `stream relay`, `sweep`, `bus`, `heartbeat`, or the name of a consumer. */
  readonly part: string;
  /** `idle`: an operator has acknowledged it. */
  readonly is: Extract<StateName, 'broken' | 'look' | 'idle'>;
  /** E.g. `Rule off`. */
  readonly text: string;
  /** `before`: events do not get as far as the part. `at`: they get no further. @default it does not stop events */
  readonly stops?: 'before' | 'at';
  /** The address of the screen that shows it. @default none does */
  readonly route?: string;
}

type WiringKind = StatusDocument['wiring']['problems'][number]['problem'];

/** The problems that stop events, in a few words each. */
const PROBLEMS: Readonly<Partial<Record<WiringKind, string>>> = {
  'mapping-disabled': 'Mapping off',
  'mapping-filter': 'Mapping filters',
  'sweep-silent': 'Silent',
  paused: 'Paused',
  'pause-expires': 'Pause expires',
  'no-mapping': 'No mapping',
  'concurrency-zero': 'Concurrency 0',
  'no-function': 'Function gone',
  'invocations-fail': 'Does not start?',
  'no-bus': 'Bus gone',
  'stream-off': 'Stream off',
  'no-queue': 'Queue gone',
  'no-entry': 'Directory entry gone',
  'bad-entry': 'Directory entry unusable',
  'no-rule': 'Rule gone',
  'rule-disabled': 'Rule off',
  pattern: 'Rule changed',
  target: 'Target changed',
  'target-input': 'Events changed',
};

/** The problems that stop an event before it reaches the queue of a consumer. */
const BEFORE: ReadonlySet<WiringKind> = new Set([
  'no-rule',
  'rule-disabled',
  'pattern',
  'target',
  'target-input',
]);

/**
 * True for a message without a row that did not arrive, as the status knows it: it was published in the period of missing events, or
 * events do not get as far as its consumer, whose queues are empty.
 */
export function hasNotArrived(status: StatusDocument, consumer: string, publishedAt: number): boolean {
  const { at, looks, wiring, consumers, deadLetterSources } = status;
  const isMissing = looks.some(
    ({ look, consumer: name, forMs, missingUntil = 0 }) =>
      look === 'missing' && name === consumer && publishedAt >= at - forMs && publishedAt < missingUntil,
  );
  const isCut = wiring.problems.some(({ part, problem }) => part === consumer && BEFORE.has(problem));
  const isEmpty = consumers[consumer]?.backlog === 0 && deadLettersOf(deadLetterSources, consumer) === 0;
  return isMissing || (isCut && isEmpty && publishedAt < at - COUNTS_LAG_MS);
}

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
  const isKnown = knownIn(status);
  return [
    ...wiring.problems.map(
      ({ part, problem, resource, state }): PartTrouble => ({
        part,
        is: isKnown(problem, part, resource) ? 'idle' : problemState({ problem, state }),
        text: PROBLEMS[problem] ?? 'Settings',
        stops: BEFORE.has(problem) ? 'before' : 'at',
      }),
    ),
    ...deadEvents(status, isKnown),
    ...stuckEvents(status, isKnown),
    ...Object.keys(status.consumers).flatMap((name) => messagesOf(status, name, isKnown)),
    ...looks.map(
      ({ look, consumer: part, messages }): PartTrouble => ({
        part,
        is: isKnown(look, part) ? 'idle' : warningState({ look, messages }),
        text: LOOKS[look],
      }),
    ),
    ...(heartbeat?.late ?? []).map(
      ({ consumer: part }): PartTrouble => ({
        part,
        is: isKnown('heartbeat-late', part) ? 'idle' : 'look',
        text: 'Heartbeat late',
      }),
    ),
    ...wiring.notChecked.flatMap(({ parts }) =>
      parts.map((part): PartTrouble => ({ part, is: 'look', text: 'Not checked' })),
    ),
  ];
}

/** Returns whether an operator has acknowledged a finding. */
type IsKnown = (code: string, part: string, resource?: string) => boolean;

function knownIn({ findings }: StatusDocument): IsKnown {
  const known = findings.filter((finding) => !isOpen(finding));
  return (code, part, resource) =>
    known.some((one) => one.code === code && one.part === part && one.resource === resource);
}

/** The events that should be published by now, of which the findings say why they are not. */
function stuckEvents({ outbox: { stuck } }: StatusDocument, isKnown: IsKnown): PartTrouble[] {
  return stuck.map(({ events, because, store }) => ({
    part: 'table',
    is: isKnown('events-pending', store === null ? 'outbox' : 'database', because) ? 'idle' : 'broken',
    text: `${count(events)} not published`,
  }));
}

function deadEvents({ outbox: { dead }, atLeast }: StatusDocument, isKnown: IsKnown): PartTrouble[] {
  if (dead === 0) return [];
  return [
    {
      part: 'table',
      is: isKnown('dead-letters', 'dead') ? 'idle' : 'broken',
      text: many(dead, 'DEAD event').replace(' ', atLeast.includes('outbox.dead') ? '+ ' : ' '),
      route: routeTo('dead-letters', 'dead'),
    },
  ];
}

/** The messages of a consumer that need time or help. A rejected one is counted as its dead letter, unless it has none. */
function messagesOf(status: StatusDocument, consumer: string, isKnown: IsKnown): PartTrouble[] {
  const { failed = 0 } = status.consumers[consumer] ?? {};
  const sources = deadLetterSourcesOf(status.deadLetterSources, consumer);
  const dead = deadLettersOf(status.deadLetterSources, consumer);
  const rejected = rejectedAlone(status, consumer);
  const [first, ...others] = sources.map(({ source }) => source);
  const messages = (state: string) => routeTo('messages', '', { state, consumer });
  // Reading stopped at a limit.
  const more = (what: string) => (status.atLeast.includes(`consumers.${consumer}.${what}`) ? '+' : '');
  const troubles: (PartTrouble & { readonly number: number })[] = [
    {
      part: consumer,
      number: dead,
      is: sources.every(({ source }) => isKnown('dead-letters', source)) ? 'idle' : 'broken',
      text: many(dead, 'dead letter'),
      route: routeTo('dead-letters', others.length === 0 ? first : ''),
    },
    {
      part: consumer,
      number: rejected,
      is: isKnown('messages-rejected', consumer) ? 'idle' : 'broken',
      text: `${count(rejected)}${more('rejected')} rejected`,
      route: messages('rejected'),
    },
    {
      part: consumer,
      number: failed,
      is: 'look',
      text: `${count(failed)}${more('failed')} retrying`,
      route: messages('failed'),
    },
  ];
  return troubles.filter(({ number }) => number > 0);
}

/** The worst trouble of some parts first. */
export function troublesAt(troubles: readonly PartTrouble[], ...parts: readonly string[]): PartTrouble[] {
  return troubles
    .filter(({ part }) => parts.includes(part))
    .sort((a, b) => WORST_FIRST.indexOf(a.is) - WORST_FIRST.indexOf(b.is));
}

/** The number of rejected messages of a consumer that no dead letter counts: it is on its way or already deleted. */
export function rejectedAlone(status: StatusDocument, consumer: string): number {
  const { rejected = 0 } = status.consumers[consumer] ?? {};
  return Math.max(0, rejected - deadLettersOf(status.deadLetterSources, consumer));
}
