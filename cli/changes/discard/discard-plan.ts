import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import type { EffectsChecked, StartedEffect } from '../../../lambdas/runtime/inbox/started-effects.ts';
import type { MissingEvent } from '../../../lambdas/runtime/operations/audit/audit-ledger.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import { isEventId } from '../../../lambdas/runtime/store/event-id.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { refuseUnreached } from '../../deployment/inbox-home.ts';
import { checkBodies } from '../../deployment/invoke.ts';
import type { Place } from '../../deployment/place.ts';
import type { FoundProblem } from '../../reports/checks/check.ts';
import { changingRule } from '../../reports/checks/rule-checks.ts';
import type { DeadLetterChoice } from '../../reports/dead-letters/choice.ts';
import type { DeadLetter, DeadLetterSource } from '../../reports/dead-letters/dead-letters.ts';
import { type ImpliedEvents, impliedEvents } from '../../reports/dead-letters/implied-events.ts';
import { unsentText } from '../../reports/dead-letters/redrive-plan.ts';
import { settled } from '../../reports/dead-letters/standing.ts';
import { hours, shell } from '../../terminal/shell.ts';
import type { AsPlanned } from '../planned-dead-letters.ts';
import { type Discarded, type DiscardOutcome, openText } from './discard-one.ts';

/** A dead letter of a discard, with its outcome. */
export interface DiscardStep extends Discarded {
  readonly deadLetter: DeadLetter;
  /** With `repair`: the events to send to its consumer before it is discarded. */
  readonly events?: readonly MissingEvent[] | undefined;
}

/** The plan of a discard. */
export interface DiscardPlan extends AsPlanned<DiscardStep> {
  readonly place: Place;
  readonly source: DeadLetterSource;
  readonly choice: DeadLetterChoice;
  /** Those that were received, which hides them. */
  readonly received: readonly DeadLetter[];
  readonly effectsChecked: boolean;
  /** The rule of its consumer that changes events, if unreadable messages would be discarded. */
  readonly rule?: FoundProblem | undefined;
}

/** The flags of a discard that its text repeats. */
export interface DiscardFlags {
  /** A digest covers only the effects that the plan has shown. */
  readonly effectsChecked?: EffectsChecked;
  readonly reject?: boolean;
  readonly verbose?: boolean;
}

/** The flags that decide the outcomes of a plan. */
type DiscardChecks = Readonly<Record<'effectsChecked' | 'reject', boolean>>;

/** Plans the discard of dead letters. It changes nothing. */
export async function planDiscard(
  deployment: Deployment,
  source: DeadLetterSource,
  deadLetters: readonly DeadLetter[],
  checks: DiscardChecks,
): Promise<readonly DiscardStep[]> {
  if ('consumer' in source) refuseUnreached(source.consumer, deployment.database?.engine);
  const plain = deadLetters.map((deadLetter): DiscardStep => {
    const outcome = plannedOutcome(source, deadLetter, checks, deployment.clock.now());
    const message =
      isDiscard(outcome) && 'consumer' in source ? openText(source.consumer, deadLetter) : undefined;
    return { deadLetter, outcome, message };
  });
  return checks.reject ? rejections(deployment, source, plain) : repairs(deployment, source, plain);
}

/** True for the plan to set an inbox row DISCARDED. */
function isDiscard(outcome: DiscardOutcome): boolean {
  return outcome === 'discard' || outcome === 'discard-replacement';
}

function plannedOutcome(
  source: DeadLetterSource,
  deadLetter: DeadLetter,
  { effectsChecked, reject }: DiscardChecks,
  now: number,
): DiscardOutcome {
  // A pointer without an event id leads to no row.
  if (source.kind === 'dead' && !isEventId(deadLetter.id)) return 'unreadable';
  const verdict = settled(deadLetter, now) ?? 'discard';
  if (verdict === 'row-deleted') return effectsChecked ? 'discard' : verdict;
  if (verdict === 'discard' && mustCheck(deadLetter, reject) && !effectsChecked) return 'effects-unchecked';
  if (verdict === 'superseded') return 'handled';
  return verdict === 'unsent' ? 'discard-replacement' : verdict;
}

/**
 * Plans to send the events of unreadable messages before these are discarded: a rule that changes events makes all of them unreadable, and
 * the outbox still has them.
 */
async function repairs(
  deployment: Deployment,
  source: DeadLetterSource,
  plain: readonly DiscardStep[],
): Promise<readonly DiscardStep[]> {
  if (source.kind !== 'consumer' && source.kind !== 'rule') return plain;
  const { consumer } = source;
  const open = plain.filter(isUnread);
  const implied = await impliedEvents(
    deployment,
    consumer,
    open.map(({ deadLetter }) => deadLetter),
  );
  const unknown = open.filter((_, index) => isUnknown(implied[index]));
  const oldest = Math.min(...unknown.map(({ deadLetter: { sentAt = 0 } }) => sentAt));
  const since = hours(deployment.clock.now() - oldest + BEFORE_SENT_MS);
  return plain.map((step): DiscardStep => {
    const found = implied[open.indexOf(step)];
    if (found === undefined) return step;
    const { missing: events } = found;
    const text = isUnknown(found)
      ? `${UNKNOWN}: \`${deployment.commandLine(shell`audit --since ${since}`)}\`.`
      : impliedText(consumer, found);
    const message = [step.message, text].filter((said) => said !== undefined).join(' ');
    return events.length === 0 ? { ...step, message } : { ...step, outcome: 'repair', events, message };
  });
}

/** An event is committed before its message is sent. */
const BEFORE_SENT_MS = 15 * MINUTE_MS;

const UNKNOWN =
  'No event of the outbox is recognized in these unreadable messages. If one was an event of this Mailroom, the audit finds it missing, and --repair sends it';

function isUnknown({ missing = [], received = [] }: Partial<ImpliedEvents> = {}): boolean {
  return missing.length + received.length === 0;
}

function impliedText({ name }: ConsumerEntry, { missing, received }: ImpliedEvents): string {
  const ids = missing.length > 0 ? missing.map(({ eventId }) => eventId) : received;
  const events = `event${ids.length === 1 ? '' : 's'} ${ids.join(', ')}`;
  return missing.length > 0
    ? `${name} has not received ${events}, of which an unreadable message is a part.`
    : `An unreadable message is a part of ${events}, which ${name} has received.`;
}

/** True if it cannot be read and would be discarded, or sent from the outbox first. */
function isUnread({ deadLetter: { eventId }, outcome }: DiscardStep): boolean {
  return eventId === undefined && (outcome === 'discard' || outcome === 'repair');
}

/** The rule that changes the events of the consumer whose unreadable messages would be discarded. */
export async function ruleOf(
  deployment: Pick<Deployment, 'directory' | 'resources'>,
  source: DeadLetterSource,
  steps: readonly DiscardStep[],
): Promise<FoundProblem | undefined> {
  return 'consumer' in source && steps.some(isUnread) ? changingRule(deployment, source.consumer) : undefined;
}

/** Plans to reject what would be discarded: the deployed consumer is asked whether its handler has a `rejected` function. */
async function rejections(
  { clients }: Deployment,
  source: DeadLetterSource,
  plain: readonly DiscardStep[],
): Promise<DiscardStep[]> {
  if (source.kind !== 'consumer' && source.kind !== 'rule') return [...plain];
  const open = plain.filter(({ outcome }) => outcome === 'discard');
  const bodies = open.map(({ deadLetter }) => deadLetter.received?.body ?? '');
  const checks = await checkBodies(clients.lambda, source.consumer, bodies);
  return plain.map((step): DiscardStep => {
    const { deadLetter } = step;
    if (step.outcome === 'discard-replacement')
      return {
        deadLetter,
        outcome: 'not-rejectable',
        message: `${unsentText(deadLetter)}. ${WITHOUT_REJECT}`,
      };
    if (deadLetter.isRowDeleted && (step.outcome === 'discard' || step.outcome === 'row-deleted'))
      return { deadLetter, outcome: 'not-rejectable', message: ROW_DELETED };
    const check = checks[open.indexOf(step)];
    if (check === undefined) return step;
    if (!check.ok)
      return { deadLetter, outcome: 'not-rejectable', message: `${check.code}: ${check.message}` };
    return check.rejects
      ? { deadLetter, outcome: 'reject' }
      : {
          deadLetter,
          outcome: 'not-rejectable',
          message: `The deployed handler of ${check.type} has no rejected function. ${WITHOUT_REJECT}`,
        };
  });
}

const WITHOUT_REJECT = 'Discard it without --reject.';

const ROW_DELETED = `Its inbox row was deleted by hand, and with it the results of its side effects. ${WITHOUT_REJECT}`;

/** The effects of a message that must be checked. A `rejected` function reads the results of those that have completed. */
function uncheckedEffects(
  { effects = [] }: Pick<DeadLetter, 'effects'>,
  reject = false,
): readonly StartedEffect[] {
  return effects.filter(({ state }) => !reject || state !== 'completed');
}

/** The effects that one check of these dead letters covers. */
export function effectsOf(
  deadLetters: readonly Pick<DeadLetter, 'effects'>[],
  reject?: boolean,
): readonly StartedEffect[] {
  return deadLetters.flatMap((deadLetter) => uncheckedEffects(deadLetter, reject));
}

/** True if a dead letter has an effect that must be checked. */
export function mustCheck(deadLetter: DeadLetter, reject?: boolean): boolean {
  return uncheckedEffects(deadLetter, reject).length > 0;
}
