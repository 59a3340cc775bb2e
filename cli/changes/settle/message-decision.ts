import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import type { EffectsChecked } from '../../../lambdas/runtime/inbox/started-effects.ts';
import { recordOperation } from '../../../lambdas/runtime/store/operation-record.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { wholeEventId } from '../../deployment/event-prefix.ts';
import { changeText, type Place } from '../../deployment/place.ts';
import type { ChangeOptions } from '../../terminal/change.ts';
import { EXIT } from '../../terminal/io.ts';
import type { ShellText } from '../../terminal/shell.ts';
import type { OperatorChange, Outcome } from '../change.ts';
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
  /** Reads that file. */
  readonly readCommit?: () => Promise<string>;
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

/** The plan of a decision. */
export interface DecisionPlan {
  readonly place: Place;
  /** With the whole event id. */
  readonly decision: MessageDecision;
  readonly planned: MessageResult;
}

/** A decision as a change. */
export type DecisionChange<Plan extends DecisionPlan> = OperatorChange<
  MessageDecision,
  Plan,
  MessageResult,
  ReturnType<typeof decisionJson>
>;

/** The result and the text of a decision, planned or made. */
export const decided: Pick<DecisionChange<DecisionPlan>, 'result' | 'text'> = {
  result: (_deployment, outcome) => ({
    json: decisionJson(outcome),
    exitCode: (outcome.made ?? outcome.plan.planned).committed === false ? EXIT.attention : EXIT.ok,
  }),
  text: (deployment, { plan: { place, planned }, made: { text, next } = planned }) =>
    changeText({ place, text: text.replace(/^m/, 'M'), next }, deployment),
};

function decisionJson({ plan: { place, decision, planned }, made }: Outcome<DecisionPlan, MessageResult>) {
  const { consumer, eventId } = decision;
  const { status, committed } = made ?? planned;
  const applied = made !== undefined;
  return { ...place, consumer, eventId, applied, status, ...(committed !== undefined && { committed }) };
}

/** Completes the event id of a decision. @throws `NO_SUCH_EVENT`, `AMBIGUOUS_ID` */
export async function withWholeId(
  deployment: Deployment,
  decision: MessageDecision,
): Promise<MessageDecision> {
  const { eventId: given } = decision;
  const eventId = await wholeEventId(deployment, given);
  if (eventId !== undefined) return { ...decision, eventId };
  throw new MailroomError(
    'NO_SUCH_EVENT',
    `No event of ${deployment.directory.mailroom.stack} has an id that begins with "${given}". Give the whole event id, at least 8 characters ` +
      'of it, or unreadable-<digest> as in messages list.',
  );
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
