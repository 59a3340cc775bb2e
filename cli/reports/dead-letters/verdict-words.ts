import type { RedriveVerdict } from './redrive-plan.ts';

/** A verdict or an outcome in words, for the command and the console. */
export interface VerdictWords {
  readonly label: string;
  /** The effect on these dead letters, and the operator's next step: sentences without the last full stop, because commands may follow. */
  readonly todo: string;
}

/** The labels of the verdicts of a redrive, in the order in which a plan shows them. With more than 12 characters, a table is too wide. */
export const VERDICT_LABELS: Readonly<Record<RedriveVerdict, string>> = {
  runs: 'would run',
  handled: 'handled',
  fails: 'would fail',
  superseded: 'superseded',
  stale: 'stale',
  unsent: 'maybe unsent',
  'too-old': 'too old',
  'out-of-order': 'out of order',
  busy: 'busy',
  unreadable: 'unreadable',
  'row-deleted': 'row deleted',
};

/** DEAD events and stream batches, which no consumer runs. */
const RUNS: Readonly<Record<string, VerdictWords>> = {
  dead: { label: 'would publish', todo: 'Published again: of each cause 1 first, then 10, then the rest' },
  stream: {
    label: 'would sweep',
    todo: 'The minutes of its events are swept: of each cause 1 batch first, then 10, then the rest',
  },
};

const FAILS: Readonly<Record<string, (it: string) => string>> = {
  dead: (it) =>
    `Kept: too large for EventBridge. Have the producer write a smaller event, then discard ${it}`,
  stream: (it) =>
    `Kept: no batch of the stream is named. Sweep from before the first send, then discard ${it}`,
};

/**
 * The words of a verdict of a redrive.
 *
 * @param source - the name of the dead-letter source
 * @param count - the dead letters with this verdict @default 1
 */
export function verdictWords(verdict: RedriveVerdict, source: string, count = 1): VerdictWords {
  const label = VERDICT_LABELS[verdict];
  if (verdict === 'runs' && RUNS[source] !== undefined) return RUNS[source];
  return { label, todo: TODOS[verdict](source, count === 1 ? ONE : SEVERAL) };
}

/** The pronouns of the dead letters of a verdict. */
interface Pronouns {
  readonly they: string;
  readonly it: string;
  readonly its: string;
  readonly rows: string;
}

const ONE: Pronouns = { they: 'it', it: 'it', its: 'its', rows: 'its row' };
const SEVERAL: Pronouns = { they: 'they', it: 'them', its: 'their', rows: 'their rows' };

const UNKNOWN_EFFECTS = 'deleted by hand, so which side effects have happened is unknown';

const TODOS: Readonly<Record<RedriveVerdict, (source: string, pronouns: Pronouns) => string>> = {
  runs: () => 'Redriven: of each cause 1 first, then 10, then the rest',
  handled: (source) =>
    source === 'dead'
      ? 'Already published or discarded. Nothing changes'
      : 'Already processed or discarded. Only the dead letter is deleted',
  fails: (source, { it }) =>
    FAILS[source]?.(it) ??
    `Kept: the deployed code refuses ${it}. Deploy code that accepts ${it}, resend ${it} with other data, or discard ${it}`,
  superseded: (_, { it, its }) =>
    `Kept: a redrive would not run ${it}, because the order has moved past ${it}. If ${its} changes are still needed, do the work by hand, or have ${its} producer publish ${it} under the next number. Then discard ${it}`,
  stale: (_, { it, they }) =>
    `Kept: ${they} ${they === 'it' ? 'has' : 'have'} waited for longer than the handler takes, and its consumer would discard ${it}. If the work is still needed, resend ${it} as ${they === 'it' ? 'a new event' : 'new events'}. Otherwise discard ${it}`,
  unsent: (_, { it }) =>
    `Kept: the resend may have stopped before it sent the event that replaces ${it}. Repeat the resend with the same data, or with other data`,
  'too-old': (_, { they, rows }) =>
    `Kept: ${they} may have run before ${rows} expired. Allow and redrive only what you know has not run. Resolve the rest once the work is done`,
  'out-of-order': (_, { they, its }) =>
    `Kept: ${they} would wait for an earlier number of ${its} ${its === 'its' ? 'aggregate' : 'aggregates'}, and be rejected again. Redrive or skip that number first`,
  busy: (_, { it }) => `Kept: a worker holds ${it}, or a retry is due soon. Try again in a minute`,
  unreadable: (_, { rows }) => `Kept: ${rows} cannot be read. The event shows what to do`,
  'row-deleted': (_, { it, rows }) =>
    `Kept: ${rows} ${it === 'it' ? 'was' : 'were'} ${UNKNOWN_EFFECTS}, and a redrive would repeat them. Ask their providers, finish the work by hand where needed, then resolve ${it}`,
};

/** The effect of a discard on a dead letter. @param source - the name of the dead-letter source */
function discardedText(source: string): string {
  if (source === 'dead') return 'Never published';
  if (source === 'stream') return 'Its dead letter is deleted. The sweep still publishes its events';
  return 'Never runs again. A later delivery is absorbed';
}

/** The outcomes of changes in words. An outcome that is also a verdict has the verdict's label. */
const OUTCOMES: Readonly<Record<string, VerdictWords>> = {
  processed: { label: 'processed', todo: 'Done' },
  repaired: {
    label: 'event sent',
    todo: 'Its event was sent to its consumer from the outbox, then the unreadable message was discarded',
  },
  deleted: { label: 'deleted', todo: 'Its message was already handled' },
  rejected: {
    label: 'rejected',
    todo: "The handler's rejected function has committed its events. Never runs again",
  },
  handled: { label: VERDICT_LABELS.handled, todo: 'Its dead letter was deleted' },
  sent: { label: 'sent', todo: 'Audit again in a few minutes' },
  'failed-again': {
    label: 'failed again',
    todo: 'Fix the cause, then plan again',
  },
  retrying: {
    label: 'retrying',
    todo: 'It failed with another cause, and its consumer tries it again. Open the event to see when',
  },
  failed: { label: 'failed', todo: 'The change of this one failed. Fix the cause, then plan again' },
  superseded: {
    label: VERDICT_LABELS.superseded,
    todo: 'It was discarded, replaced or passed over before it ran. Its dead letter stays. Open the event for details',
  },
  waiting: {
    label: 'waiting',
    todo: 'Redriven, without a result yet. Open the event to see what it waits for',
  },
  untried: { label: 'not tried', todo: 'Still in the source' },
  kept: { label: 'kept', todo: 'It would not run, so it stays in the source' },
  busy: { label: VERDICT_LABELS.busy, todo: 'A worker holds it. Try again in a minute' },
  unreadable: { label: VERDICT_LABELS.unreadable, todo: 'Its row cannot be read' },
  'not-rejectable': {
    label: 'not rejectable',
    todo: 'Still in the source. The reason is beside each dead letter',
  },
  'row-deleted': {
    label: VERDICT_LABELS['row-deleted'],
    todo: 'Its row was deleted by hand. Ask the providers of its side effects, then plan again',
  },
  'effects-unchecked': {
    label: 'effects to check',
    todo: 'Its side effects have happened, or may have. Ask their providers, then plan again',
  },
  changed: {
    label: 'changed since the plan',
    todo: 'Left alone. Read the dead letters again, then plan again',
  },
  unsent: { label: 'not sent', todo: 'The reason is beside each event' },
};

/** Why a redrive did not try a dead letter, as sentences without a full stop; by the member `notTried` of its document. */
const UNTRIED: Readonly<Record<string, string>> = {
  'failed-again': 'Its cause failed again, so it is not fixed',
  'too-many-failures': 'Too many failed with other causes: as many as were processed',
  'no-result': 'Those that were redriven before it have no result yet',
  predecessor: 'An earlier event of its aggregate is not processed',
  stopped: 'The redrive was stopped before it',
};

/** The reason for which a redrive did not try a dead letter. A reason of a newer command keeps its own word. */
export function untriedWords(why: string): string {
  return UNTRIED[why] ?? why;
}

/** The labels of `processed` for DEAD events and stream batches. */
const PROCESSED: Readonly<Record<string, string>> = { dead: 'published', stream: 'swept' };

/** The words of an outcome. An outcome of a newer command keeps its own word. @param source - of its dead letter, if it has one */
export function outcomeWords(outcome: string, source = ''): VerdictWords {
  if (outcome === 'discarded') return { label: outcome, todo: discardedText(source) };
  const words = OUTCOMES[outcome] ?? { label: outcome, todo: '' };
  return outcome === 'processed' ? { ...words, label: PROCESSED[source] ?? words.label } : words;
}

/** The words of the outcomes of a planned discard that differ from those of the discard. */
const PLANNED: Readonly<Record<string, VerdictWords>> = {
  'discard-replacement': {
    label: 'replacement discarded',
    todo: 'Its consumer has not received the event that replaces it. That event is discarded, and never runs',
  },
  repair: {
    label: 'event sent',
    todo: 'Its consumer has not received the event of this unreadable message. The outbox has it: it is sent first, then the message is discarded',
  },
  reject: {
    label: 'rejected',
    todo: "The handler's rejected function commits its events. Never runs again. A later delivery is absorbed",
  },
  'not-rejectable': {
    label: 'not rejectable',
    todo: 'Kept: it cannot be rejected. Remove the reason, or discard it without the rejection',
  },
  'row-deleted': {
    label: VERDICT_LABELS['row-deleted'],
    todo: `Kept: its row was ${UNKNOWN_EFFECTS}. Read the logs and ask the providers, then confirm that they are checked`,
  },
  'effects-unchecked': {
    label: 'effects to check',
    todo: 'Kept: its side effects have happened, or may have. Ask their providers, then confirm that they are checked',
  },
};

/** The words of an outcome of a planned discard. @param source - the name of the dead-letter source */
export function plannedDiscardWords(outcome: string, source: string): VerdictWords {
  if (outcome === 'discard') return { label: 'discarded', todo: discardedText(source) };
  return PLANNED[outcome] ?? (isVerdict(outcome) ? verdictWords(outcome, source) : outcomeWords(outcome));
}

function isVerdict(outcome: string): outcome is RedriveVerdict {
  return outcome in VERDICT_LABELS;
}
