import type { RedriveVerdict } from '../../../reports/dead-letters/redrive-plan.ts';
import type { StateName } from '../frame/state-name.ts';

/** A verdict of a redrive in words. */
export interface VerdictWords {
  readonly is: StateName;
  readonly label: string;
  /** The effect on these dead letters, and the operator's next step. */
  readonly todo: string;
}

/** The words of each verdict, in the order in which a plan shows them. */
export const VERDICTS: Readonly<Record<RedriveVerdict, VerdictWords>> = {
  runs: { is: 'ok', label: 'would run', todo: 'Redriven: 1 first, then 10, then the rest.' },
  handled: {
    is: 'ok',
    label: 'already handled',
    todo: 'Its message is processed or discarded. The dead letter is deleted.',
  },
  fails: {
    is: 'broken',
    label: 'would fail',
    todo: 'Stays: the deployed code refuses it. Deploy code that accepts it, resend it with other data, or discard it.',
  },
  unsent: {
    is: 'look',
    label: 'may be unsent',
    todo: 'Stays: its consumer has not received the event that replaces it. Resend it with the same data, or with other data.',
  },
  'too-old': {
    is: 'look',
    label: 'too old',
    todo: 'Stays: it may have run before its row expired. Open the event for the command that allows or resolves it.',
  },
  busy: {
    is: 'busy',
    label: 'busy',
    todo: 'Stays: a worker holds it, or a retry is due soon. Plan again in a minute.',
  },
  unreadable: {
    is: 'broken',
    label: 'unreadable',
    todo: 'Stays: its row cannot be read. Open the event to see why.',
  },
  'row-deleted': {
    is: 'broken',
    label: 'row deleted',
    todo: 'Stays: its row was deleted by hand, so which side effects have happened is unknown. Ask their providers.',
  },
};

/** The outcome of a planned discard in words; `discard` is the plan's own. */
export const DISCARD_VERDICTS: Readonly<Record<string, VerdictWords>> = {
  discard: { is: 'look', label: 'discarded', todo: 'Never runs again. A later delivery is absorbed.' },
  'discard-replacement': {
    is: 'look',
    label: 'replacement discarded',
    todo: 'Its consumer has not received the event that replaces it. That event is discarded, and never runs.',
  },
  handled: VERDICTS.handled,
  unsent: VERDICTS.unsent,
  busy: VERDICTS.busy,
  unreadable: VERDICTS.unreadable,
  'row-deleted': VERDICTS['row-deleted'],
  'effects-unchecked': {
    is: 'look',
    label: 'effects to check',
    todo: 'Stays: its side effects have happened, or may have. Ask their providers, then discard it with --effects-checked.',
  },
};
