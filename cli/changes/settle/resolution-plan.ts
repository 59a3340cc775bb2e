import type { InboxState } from '../../../lambdas/runtime/inbox/inbox-state.ts';
import { areChecked, type StartedEffect } from '../../../lambdas/runtime/inbox/started-effects.ts';
import { checkedWord, effectText } from '../../deployment/effects.ts';
import { unreadableText } from '../../deployment/row-text.ts';
import { applyWords } from '../../terminal/change.ts';
import { clipped } from '../../terminal/output.ts';
import { shell } from '../../terminal/shell.ts';
import { time } from '../../terminal/times.ts';
import { fixText } from './fix-file.ts';
import { type MessageDecision, type MessageResult, nameOf } from './message-decision.ts';
import type { Resolution } from './resolution.ts';

/** The plan to resolve a message, with the command that makes it. */
export function resolutionPlan(
  decision: MessageDecision,
  { fix, state, isRowDeleted, effects, areUnknown, open }: Resolution,
): MessageResult {
  const { consumer, eventId, force, effectsChecked, commit } = decision;
  const options = [
    ...(commit === undefined ? [] : ['--commit', commit]),
    ...(force ? ['--force'] : []),
    ...(effectsChecked && areChecked(effectsChecked, effects) ? [checkedWord(effects)] : []),
  ];
  const isUnchecked = (effects.length > 0 || areUnknown) && !areChecked(effectsChecked ?? false, effects);
  const commits = fix === undefined ? '' : ` Would commit with it ${fixText(fix)}.`;
  return {
    status: 'resolve',
    text: `Would set ${nameOf(decision)} PROCESSED without running it.${commits} ${stateText(state, isRowDeleted)}${open}${checkText(effects, areUnknown)} Nothing was changed. To resolve it${isUnchecked ? `, add ${checkedWord(effects)} once you know` : ''}:`,
    next: shell`messages ${['resolve', consumer, eventId, ...options, ...applyWords(decision)]}`,
  };
}

/** Names the effects to find out about before a message is resolved. */
function checkText(effects: readonly StartedEffect[], areUnknown: boolean): string {
  if (areUnknown) return ' Which side effects were started is unknown: find out before you resolve it.';
  if (effects.length === 0) return '';
  const said = effects.map((effect) => ` ${effectText(effect).replace(/^e/, 'E')}.`).join('');
  return `${said} Ask its provider before you resolve it.`;
}

/** The state that a resolution ends. */
function stateText(state: InboxState, isRowDeleted: boolean): string {
  switch (state.is) {
    case 'absent':
      return isRowDeleted
        ? 'It was rejected, and its row was deleted by hand.'
        : 'The consumer never began it.';
    case 'unreadable':
      return `Its row ${unreadableText(state.problem)}.`;
    case 'leased':
      return `A worker may hold it until ${time(state.until)}: its calls to other services continue.`;
    case 'rejected':
      return `It is REJECTED${state.row.reason ? `, ${clipped(state.row.reason)}` : ''} now.`;
    default:
      return `It is ${state.row.status} now.`;
  }
}
