/** `ok`: done or well. `look`: may be in trouble. `broken`: action is required. `busy`: under way. `idle`: nothing to say. */
export type StateName = 'ok' | 'look' | 'broken' | 'busy' | 'idle';

const STATES: Readonly<Record<string, StateName>> = {
  processed: 'ok',
  published: 'ok',
  completed: 'ok',
  resolved: 'ok',
  discarded: 'idle',
  expired: 'idle',
  waiting: 'busy',
  working: 'busy',
  processing: 'busy',
  pending: 'busy',
  publishing: 'busy',
  failed: 'look',
  retrying: 'look',
  abandoned: 'look',
  unproven: 'look',
  released: 'look',
};

/** The state of a word of the command: a message's or event's state, in any case. Unknown words require a look. */
export function stateOf(word: string): StateName {
  return STATES[word.toLowerCase()] ?? 'broken';
}
