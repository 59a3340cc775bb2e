import type { EffectsChecked } from '../../../lambdas/runtime/inbox/started-effects.ts';
import { recordOperation } from '../../../lambdas/runtime/store/operation-record.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import type { ChangeOptions } from '../../terminal/change.ts';
import type { ShellText } from '../../terminal/shell.ts';
import { endingOf, type FinalRow } from '../message-ending.ts';
import type { ManualFix } from './fix-file.ts';

/** An operator's decision about one message of one consumer. */
export interface MessageDecision extends ChangeOptions {
  readonly consumer: string;
  readonly eventId: string;
  readonly force?: boolean;
  /** A digest covers only the effects that the plan has shown. */
  readonly effectsChecked?: EffectsChecked;
  /** The file of a manual fix, which a printed command repeats. */
  readonly commit?: string;
}

/** A decision to make, with its reason. */
export type MadeDecision = MessageDecision & { readonly reason: string };

/** The result of a decision or of its plan. */
export interface MessageResult {
  readonly status: string;
  /** The sentence about the message; it ends with a colon if there is a command. */
  readonly text: string;
  /** The command that comes next. */
  readonly next?: ShellText | undefined;
  /** The fix of `--commit` was committed, by this run or an earlier one. Absent without one, and in a plan. */
  readonly committed?: boolean | undefined;
}

/** Records a decision before it is applied. @returns the ARN of the operator */
export async function record(deployment: Deployment, command: string, made: MadeDecision): Promise<string> {
  const { consumer, eventId, reason, force } = made;
  const by = await deployment.operator();
  const subject = `${consumer} ${eventId}${force ? ', by force' : ''}`;
  await recordOperation(deployment, { by, reason, command, subject });
  return by;
}

/** The ending of a message that was final before. @param fix - of a plan, which cannot tell whether it was committed */
export function ended(decision: MessageDecision, row: FinalRow, fix?: ManualFix): MessageResult {
  const { status, text } = endingOf(row);
  const asks = fix
    ? ' With --apply, the command reports whether this fix was committed, and changes nothing.'
    : '';
  return { status, text: `${nameOf(decision)} ${text}.${asks}` };
}

/** Names the message of a decision within a sentence. */
export function nameOf({ consumer, eventId }: MessageDecision): string {
  return `message ${eventId} of ${consumer}`;
}
