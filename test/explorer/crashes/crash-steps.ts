import type { Scheduler, TimelineStep, World } from '../../../testing/explorer/actor.ts';

/** The stored state, by name; undefined where it does not exist. */
export type Rows = Readonly<Record<string, string | undefined>>;

/** A lane of the picture. */
export type Lane =
  | 'producer'
  | 'stream relay'
  | 'sweep'
  | 'worker 1'
  | 'worker 2'
  | 'worker 3'
  | 'table'
  | 'bus'
  | 'queue'
  | 'provider'
  | 'target';

/** A change of stored state. */
interface RowChange {
  readonly row: string;
  readonly before: string;
  readonly after: string;
}

/** One call, and what it changed. */
export interface CrashStep {
  /** Milliseconds since the beginning. */
  readonly atMs: number;
  readonly from: Lane;
  readonly to: Lane;
  readonly call: string;
  /** `lost`: it was never sent, or had no effect. `unanswered`: it took effect, and its response was lost. */
  readonly outcome: 'done' | 'refused' | 'lost' | 'unanswered';
  /** Set if the caller crashed there. */
  readonly crash?: 'before' | 'after';
  readonly changes: readonly RowChange[];
}

interface Drawn {
  readonly to: Lane;
  readonly call: string;
}

/** Claims a message; refused because of an expired claim, it is followed by one that takes over. */
const CLAIM = 'claim the message';

/** Starts an effect; a later update of the same kind by the same worker renews its lease. */
const START = 'start the effect';

/** What each call of the protocol is called in the picture; `undefined` leaves it out. The first pattern that matches decides. */
const CALLS: readonly (readonly [RegExp, Drawn | undefined])[] = [
  [/^transact put ORDER/, { to: 'table', call: 'write order and event, one transaction' }],
  [/^put ThingHappened/, { to: 'bus', call: 'PutEvents' }],
  [/^update each .* to PUBLISHED/, { to: 'table', call: 'mark PUBLISHED' }],
  [/^update each .* to another lease/, { to: 'table', call: 'claim the row' }],
  [/^get OUTBOX/, { to: 'table', call: 'read the row' }],
  [/^query OUTBOX/, { to: 'table', call: 'read the minute' }],
  [/^(get|query|update|put) SWEEP/, undefined],
  [/^read the stream/, undefined],
  [/^receive/, { to: 'queue', call: 'receive' }],
  [/^update INBOX.* to PROCESSING/, { to: 'table', call: CLAIM }],
  [/^update INBOX.* to FAILED/, { to: 'table', call: 'record a failure' }],
  [/^update INBOX.* to COMPLETED/, { to: 'table', call: "store the effect's result" }],
  [/^update INBOX.* MESSAGE$/, { to: 'table', call: START }],
  [/^update INBOX.* to PROCESSED/, { to: 'table', call: 'record PROCESSED, with the answer' }],
  [/^send/, { to: 'target', call: 'send the event' }],
  [/^effect/, { to: 'provider', call: 'charge, with the idempotency key' }],
  [/^transact .*to PROCESSED/, { to: 'table', call: 'commit payment and PROCESSED, one transaction' }],
  [/^get INBOX/, { to: 'table', call: 'read the row' }],
  [/^(put|delete) FAILED/, undefined],
  [/^change visibility/, { to: 'queue', call: 'put the message off' }],
  [/^delete the message/, { to: 'queue', call: 'acknowledge (delete)' }],
];

const LANES: Readonly<Record<string, Lane>> = {
  producer: 'producer',
  stream: 'stream relay',
  sweep: 'sweep',
  rest: 'sweep',
  'worker 1': 'worker 1',
  'worker 2': 'worker 2',
  'worker 3': 'worker 3',
};

/** Watches a world while it runs: the state is compared after each step of the schedule. */
export function recorder(
  scheduler: Scheduler,
  stage: World,
  rows: () => Rows,
): { readonly world: World; readonly steps: () => readonly CrashStep[] } {
  const steps: CrashStep[] = [];
  let before = rows();
  let seen = 0;
  const record = () => {
    const news = scheduler.timeline.slice(seen);
    seen = scheduler.timeline.length;
    const after = rows();
    const changes = changesOf(before, after);
    before = after;
    const step = news.map(stepOf).find((drawn) => drawn !== undefined);
    if (step === undefined) return;
    const call = nameOf(step, steps);
    steps.push({ ...step, call, outcome: isRefused(news, changes) ? 'refused' : step.outcome, changes });
  };
  const world: World = {
    ...stage,
    violation: () => {
      record();
      return stage.violation();
    },
  };
  return { world, steps: () => withoutRepeats(steps) };
}

/** What a call is called after the ones before it: the same request can have another purpose. */
function nameOf({ from, call }: Pick<CrashStep, 'from' | 'call'>, before: readonly CrashStep[]): string {
  const last = before.at(-1);
  if (call === CLAIM && last?.call === CLAIM && last.from === from) return 'take over: its lease has expired';
  const starts = before.some((step) => step.from === from && step.call === START);
  return call === START && starts ? 'renew the lease' : call;
}

/** A mark is one of several updates in a request: its refusal is not an error, but shows in the row. */
function isRefused(news: readonly TimelineStep[], changes: readonly RowChange[]): boolean {
  return news.some(
    ({ what }) =>
      /^ {2}.*(condition|cancelled)/i.test(what) ||
      (/^update each [^>]*$/.test(what) && changes.length === 0),
  );
}

function changesOf(before: Rows, after: Rows): RowChange[] {
  return Object.keys(after)
    .filter((row) => before[row] !== after[row])
    .map((row) => ({ row, before: before[row] ?? 'none', after: after[row] ?? 'none' }));
}

/** @throws Error If the protocol makes a call that has no name here. */
function stepOf({ at, actor, what }: TimelineStep): Omit<CrashStep, 'changes'> | undefined {
  const from = LANES[actor];
  if (from === undefined || what.startsWith('  ') || what.startsWith('is stopped')) return undefined;
  const [label = '', fault] = what.split(' -> ');
  const named = CALLS.find(([pattern]) => pattern.test(label));
  if (named === undefined) throw new Error(`The picture has no name for the call "${label}"`);
  const [, drawn] = named;
  return drawn && { atMs: at, from, ...drawn, ...endOf(fault) };
}

function endOf(fault: string | undefined): Pick<CrashStep, 'outcome' | 'crash'> {
  if (fault === undefined) return { outcome: 'done' };
  if (fault === 'crash before it') return { outcome: 'lost', crash: 'before' };
  if (fault === 'crash after it') return { outcome: 'unanswered', crash: 'after' };
  if (fault === 'the answer is lost') return { outcome: 'unanswered' };
  if (fault === 'the message is not deleted') return { outcome: 'lost' };
  throw new Error(`The picture has no name for the fault "${fault}"`);
}

/** Without reads that repeat the one before, and receives that returned nothing. */
function withoutRepeats(steps: readonly CrashStep[]): CrashStep[] {
  return steps.filter((step, index) => {
    const next = steps[index + 1];
    const isRepeated = next?.call === step.call && next.from === step.from;
    if (step.call === 'receive') return step.changes.length > 0;
    return !(step.call === 'read the row' && isRepeated);
  });
}
