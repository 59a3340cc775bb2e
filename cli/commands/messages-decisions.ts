import { Command } from 'commander';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { TOO_OLD } from '../../lambdas/runtime/inbox/inbox-conditions.ts';
import { type InboxState, inboxState } from '../../lambdas/runtime/inbox/inbox-state.ts';
import {
  areChecked,
  type EffectsChecked,
  effectsDigest,
  type StartedEffect,
} from '../../lambdas/runtime/inbox/started-effects.ts';
import type { ConsumerEntry } from '../../lambdas/runtime/operations/directory.ts';
import {
  allowTooOld,
  notTooOld,
  resolveMessage,
} from '../../lambdas/runtime/operations/message-operations.ts';
import { isEventId, isUnreadableId, outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { readLastSequence } from '../../lambdas/runtime/store/last-sequence.ts';
import { recordOperation } from '../../lambdas/runtime/store/operation-record.ts';
import type { PlaceInOrder } from '../../lambdas/runtime/store/rows.ts';
import { readable } from '../../lambdas/runtime/store/stored-rows.ts';
import { readDeployed, unknownReadingText } from '../deployment/deployed-reading.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { checkedWord, effectsUnchecked, effectText, openEffects } from '../deployment/effects.ts';
import { wholeEventId } from '../deployment/event-prefix.ts';
import { settleByConsumer } from '../deployment/invoke.ts';
import { readInbox } from '../deployment/message-reader.ts';
import { changeText, placeOf } from '../deployment/place.ts';
import { unreadableText } from '../deployment/row-text.ts';
import { isNotDue } from '../deployment/rows-reader.ts';
import { readStanding } from '../reports/dead-letters/standing.ts';
import { causeOf, fixText, type ManualFix, readFix, refuseOtherKeys } from '../reports/messages/fix-file.ts';
import { endingOf, type FinalRow } from '../reports/messages/message-ending.ts';
import {
  type FoundPlace,
  findPlace,
  isStrict,
  placed,
  placeOfMessage,
  unknownPlaceText,
} from '../reports/messages/place-of-message.ts';
import { inTime } from '../reports/why/event-state.ts';
import { onceArgument } from '../terminal/arguments.ts';
import {
  applyWords,
  type ChangeOptions,
  effectsCheckedOption,
  reasonOption,
  reasonToApply,
} from '../terminal/change.ts';
import { EXIT, fileText, type Io } from '../terminal/io.ts';
import { clipped } from '../terminal/output.ts';
import { type ShellText, shell } from '../terminal/shell.ts';
import { type Report, reportOf } from '../terminal/terminal.ts';
import { time } from '../terminal/times.ts';
import { reporting } from './command.ts';

/** An operator's decision about one message of one consumer. */
interface MessageDecision extends ChangeOptions {
  readonly consumer: string;
  readonly eventId: string;
  readonly force?: boolean;
  /** A digest covers only the effects that the plan has shown. */
  readonly effectsChecked?: EffectsChecked;
  /** The file of a manual fix, which a printed command repeats. */
  readonly commit?: string;
}

/** A decision to make, with its reason. */
type MadeDecision = MessageDecision & { readonly reason: string };

/** `mailroom messages resolve` and `mailroom messages allow`. */
export function decisionCommands(io: Io): readonly Command[] {
  const resolving =
    'Shows what resolving a message would change. With --apply, sets it PROCESSED without running it, because its work was ' +
    'done by hand.';
  const allowing =
    'Shows whether a message was rejected as EVENT_TOO_OLD. With --apply, allows it to run: use it only if you know that the ' +
    'message was never processed. Redrive it afterwards.';
  return [
    decisionCommand(io, 'resolve', resolving, (deployment, decision) => resolve(deployment, decision, io))
      .option(
        '--commit <file>',
        'rows and events to commit with it, as JSON; - reads standard input',
        onceArgument,
      )
      .option('--force', 'even if a worker holds it, its row is unreadable or its event is unknown')
      .addOption(effectsCheckedOption())
      .option('--apply', 'resolve it'),
    decisionCommand(io, 'allow', allowing, allow).option('--apply', 'allow it'),
  ];
}

function decisionCommand(
  io: Io,
  name: string,
  description: string,
  decide: (deployment: Deployment, decision: MessageDecision) => Promise<MessageResult>,
): Command {
  return new Command(name)
    .description(description)
    .argument('<consumer>', 'the name of the consumer')
    .argument('<eventId>', 'the event id, its first 8 or more characters, or unreadable-<digest>')
    .addOption(reasonOption())
    .action(
      reporting<MessageDecision>(
        io,
        async (deployment, given) => {
          reasonToApply(given);
          const decision = { ...given, eventId: await idOf(deployment, given.eventId) };
          return report(deployment, decision, await decide(deployment, decision));
        },
        'consumer',
        'eventId',
      ),
    );
}

/** @throws `NO_SUCH_EVENT`, `AMBIGUOUS_ID` */
async function idOf(deployment: Deployment, given: string): Promise<string> {
  const eventId = await wholeEventId(deployment, given);
  if (eventId !== undefined) return eventId;
  throw new MailroomError(
    'NO_SUCH_EVENT',
    `No event of ${deployment.directory.mailroom.stack} has an id that begins with "${given}". Give the whole event id, at least 8 characters ` +
      'of it, or unreadable-<digest> as in messages list.',
  );
}

/** The result of a decision or of its plan. */
interface MessageResult {
  readonly status: string;
  /** The sentence about the message; it ends with a colon if there is a command. */
  readonly text: string;
  /** The command that comes next. */
  readonly next?: ShellText | undefined;
  /** The fix of `--commit` was committed, by this run or an earlier one. Absent without one, and in a plan. */
  readonly committed?: boolean | undefined;
}

/** A message to resolve, and what is known of it. */
interface Resolution {
  readonly entry: ConsumerEntry;
  /** The rows and events to commit with it; absent without `--commit`. */
  readonly fix: ManualFix | undefined;
  readonly state: InboxState;
  readonly isRowDeleted: boolean;
  /** The side effects whose providers must be asked first. */
  readonly effects: readonly StartedEffect[];
  /** Its row cannot tell which side effects were started. */
  readonly areUnknown: boolean;
  readonly found: FoundPlace;
  /** Sentences about work that the decision leaves. */
  readonly open: string;
}

async function resolve(deployment: Deployment, decision: MessageDecision, io: Io): Promise<MessageResult> {
  const resolution = await readResolution(deployment, decision, io);
  const { state, fix } = resolution;
  const reason = reasonToApply(decision);
  const isOver = isFinal(state);
  if (reason === undefined)
    return isOver ? ended(decision, state.row, fix) : resolutionPlan(decision, resolution);
  if (isOver && fix === undefined) return ended(decision, state.row);
  return applyResolution(deployment, { ...decision, reason }, resolution);
}

/** Reads a message. @throws if it cannot be resolved, whatever its effects */
async function readResolution(
  deployment: Deployment,
  decision: MessageDecision,
  io: Io,
): Promise<Resolution> {
  const { consumer, eventId, force = false, commit } = decision;
  const { table, clock, directory } = deployment;
  const entry = deployment.consumer(consumer);
  const fix =
    commit === undefined ? undefined : readFix(await fileText(io, '--commit', commit), entry.service);
  if (fix !== undefined) refuseOtherKeys(fix, entry, directory.mailroom.table);
  const { row, isRowDeleted = false } = await readStanding(table, consumer, eventId);
  const state = inboxState(row, clock.now());
  const anywhere = await findPlace(deployment, entry, { eventId, row });
  // The function that commits a fix knows only the row and the event.
  const isKnown = fix === undefined || anywhere.event !== undefined;
  const found = isKnown ? anywhere : { place: placeOfMessage(entry, { eventId, row }) };
  if (state.is === 'absent' && !isRowDeleted && !force) await requireEvent(deployment, eventId, anywhere);
  // Nothing commits with a row that cannot be read, not even by force.
  if (state.is === 'unreadable' && (!force || fix !== undefined)) throw unreadable(decision, state.problem);
  // Without AWS's time, only resolveMessage can tell: it watches the row for a whole lease.
  if (!force && state.is === 'leased' && deployment.clockIsTrusted)
    throw leased(decision, state.until, clock.now());
  const isUnknown = !isFinal(state) && (await isReadingUnknown(deployment, decision, anywhere));
  const effects = openEffects(eventId, consumer, row, clock.now());
  const areUnknown = isRowDeleted || state.is === 'unreadable';
  const texts = [unknownPlaceText(entry, found.place), isUnknown ? unknownReadingText(entry) : undefined];
  return { entry, fix, state, isRowDeleted, effects, areUnknown, found, open: texts.map(spaced).join('') };
}

/**
 * Returns true for a message without an event if it is unknown whether the deployed function can read it.
 *
 * @throws `MESSAGE_READABLE` if it can, and the event is not done: functions that have started do not look for the row of the body
 */
async function isReadingUnknown(
  { clients, clock, commandLine, table, consumer: entryOf }: Deployment,
  decision: MessageDecision,
  { body }: FoundPlace,
): Promise<boolean> {
  if (!isUnreadableId(decision.eventId)) return false;
  if (body === undefined) return true;
  const { consumer, commit } = decision;
  const [reading = 'unknown'] = await readDeployed(clients.lambda, entryOf(consumer), [body]);
  if (reading === 'unread' || reading === 'unknown') return reading === 'unknown';
  const { eventId } = reading;
  // What is done under the event's own id never runs again: only this row is left.
  if (isFinal(inboxState(await readInbox(table, consumer, eventId, true), clock.now()))) return false;
  const fixWords = commit === undefined ? [] : ['--commit', commit];
  const words = ['resolve', consumer, eventId, ...fixWords, ...applyWords(decision)];
  throw new MailroomError(
    'MESSAGE_READABLE',
    `The deployed function of ${consumer} reads ${decision.eventId} as event ${eventId}, and would not look for the row of the body. Nothing was changed. Resolve the ` +
      `event: \`${commandLine(shell`messages ${words}`)}\`.`,
  );
}

function isFinal(state: InboxState): state is Extract<InboxState, { is: 'processed' | 'discarded' }> {
  return state.is === 'processed' || state.is === 'discarded';
}

function resolutionPlan(
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

/** @throws if its effects were not checked, or its consumer refuses the fix */
async function applyResolution(
  deployment: Deployment,
  made: MadeDecision,
  { entry, fix, state, isRowDeleted, effects, areUnknown, found, open }: Resolution,
): Promise<MessageResult> {
  const { consumer, eventId, reason, force = false, effectsChecked = false } = made;
  const { clock, clients } = deployment;
  const { place } = found;
  if (areUnknown && !effectsChecked) throw effectsUnknown(made, isRowDeleted);
  const unchecked = (open: readonly StartedEffect[]) =>
    effectsUnchecked(`Message ${eventId} of ${consumer}`, open.map(effectText));
  if (effects.length > 0 && !areChecked(effectsChecked, effects)) throw unchecked(effects);
  // Bound to what this run has read: an effect that starts meanwhile is not checked. Of a row that cannot be read, none is known.
  const checked = effectsChecked && state.is !== 'unreadable' ? effectsDigest(effects) : effectsChecked;
  const cause = causeOf(eventId, found.event);
  const by = isFinal(state)
    ? await deployment.operator()
    : await record(deployment, 'messages resolve', made);
  const result =
    fix === undefined
      ? await resolveMessage(deployment, {
          ...{ ...made, effectsChecked: checked, by, isStrict: isStrict(entry) },
          order: placed(place),
        })
      : await settleByConsumer(clients.lambda, entry, {
          mailroomCommit: { eventId, by, reason, force, effectsChecked: checked, cause, ...fix },
        });
  switch (result.status) {
    case 'leased':
      throw leased(made, result.until, clock.now());
    case 'unreadable':
      throw unreadable(made, result.problem);
    case 'row-deleted':
      throw effectsUnknown(made, true);
    case 'effects-unchecked':
      throw unchecked(result.effects);
    case 'out-of-order':
      throw new MailroomError(
        'OUT_OF_ORDER',
        `Message ${eventId} of ${consumer} cannot end before sequence ${result.missing} of its aggregate, which was not applied. Nothing was changed. End or skip that one first.`,
      );
    case 'refused':
      if (fix === undefined || result.code !== ALREADY_SETTLED) throw fixRefused(made, result);
      break;
  }
  const left = result.status === 'resolved' ? open : '';
  if (fix !== undefined) {
    const fixed = await fixResult(deployment, made, fix, result.status === 'resolved');
    return { ...fixed, text: `${fixed.text}${left}` };
  }
  if ('earlier' in result && result.earlier !== undefined) return ended(made, result.earlier);
  return { status: result.status, text: `${nameOf(made)} is ${result.status}.${left}` };
}

/** The code with which a function answers for a message that another decision has ended. */
const ALREADY_SETTLED = 'ALREADY_SETTLED';

/** Reports a fix whose message is final. Its function has told whether it was committed, now or by an earlier run of this command. */
async function fixResult(
  { table }: Deployment,
  made: MadeDecision,
  fix: ManualFix,
  committed: boolean,
): Promise<MessageResult> {
  if (committed)
    return {
      status: 'resolved',
      committed,
      text: `${nameOf(made)} is resolved. It committed ${fixText(fix)}.`,
    };
  const row = readable(await readInbox(table, made.consumer, made.eventId, true));
  const isOver = row?.status === 'PROCESSED' || row?.status === 'DISCARDED';
  const { status, text } = isOver
    ? ended(made, row)
    : { status: 'processed', text: `${nameOf(made)} is final.` };
  return { status, committed, text: `${text} The fix was not committed: ${fixText(fix)}.` };
}

/** The ending of a message that was final before. @param fix - of a plan, which cannot tell whether it was committed */
function ended(decision: MessageDecision, row: FinalRow, fix?: ManualFix): MessageResult {
  const { status, text } = endingOf(row);
  const asks = fix
    ? ' With --apply, the command reports whether this fix was committed, and changes nothing.'
    : '';
  return { status, text: `${nameOf(decision)} ${text}.${asks}` };
}

async function allow(deployment: Deployment, decision: MessageDecision): Promise<MessageResult> {
  const { consumer, eventId } = decision;
  const entry = deployment.consumer(consumer);
  const row = await readInbox(deployment.table, consumer, eventId, true);
  // Refused changes are not recorded.
  const known = readable(row);
  if (known?.status !== 'REJECTED' || known.reason !== TOO_OLD) throw notTooOld(decision, row);
  // Without an order, its place is of one that was removed, or of a single handler: then the redrive says so.
  const place = entry.order === undefined ? undefined : placed(placeOfMessage(entry, { eventId, row }));
  if (place !== undefined) await refusePassedOver(deployment, decision, place);
  const reason = reasonToApply(decision);
  if (reason === undefined) {
    const text =
      `Would allow ${nameOf(decision)} to run. It was rejected as too old, so it may have run before: allow it only if you know ` +
      'that it has not. Nothing was changed. To allow it:';
    return {
      status: 'allow',
      text,
      next: shell`messages ${['allow', consumer, eventId, ...applyWords(decision)]}`,
    };
  }
  const made = { ...decision, reason };
  await allowTooOld(deployment, { ...made, by: await record(deployment, 'messages allow', made) });
  return {
    status: 'allowed',
    text: `${nameOf(decision)} is allowed to run. To redrive it:`,
    next: shell`dlq redrive ${[`consumer:${consumer}`, eventId, ...applyWords(made)]}`,
  };
}

/** @throws `OUT_OF_ORDER` if a redrive of the message would not run it */
async function refusePassedOver(
  { table }: Deployment,
  decision: MessageDecision,
  { key, sequence }: PlaceInOrder,
): Promise<void> {
  const { last } = await readLastSequence({ table }, key);
  if (sequence > last) return;
  throw new MailroomError(
    'OUT_OF_ORDER',
    `${nameOf(decision)} cannot run: it has number ${sequence}, and number ${last} of its aggregate was applied or passed over, so a redrive changes nothing. Nothing was changed.`,
  );
}

/** Refuses unknown ids: resolving a mistyped one would have no effect and look like a success. */
async function requireEvent(
  { table, directory, clock }: Deployment,
  eventId: string,
  { event, body }: FoundPlace,
): Promise<void> {
  const item = isEventId(eventId) ? await table.get(outboxKeyOf(eventId), { consistent: true }) : undefined;
  const now = clock.now();
  if (item?.status === 'CANCELLED' || (item !== undefined && isNotDue(item, now))) {
    const state =
      item.status === 'CANCELLED'
        ? 'is CANCELLED and is never published'
        : `is scheduled and due ${inTime(Number(item.dueAt), now)}`;
    throw new MailroomError(
      'NOT_PUBLISHED',
      `Event ${eventId} ${state}: it has no message to resolve. Nothing was changed. To keep a consumer from processing it later, resolve it with --force.`,
    );
  }
  if (item !== undefined || event !== undefined || body !== undefined) return;
  throw new MailroomError(
    'NO_SUCH_EVENT',
    `Event ${eventId} is neither in the outbox of ${directory.mailroom.stack} nor in this consumer's inbox or dead-letter queues. Check the id. If its rows have ` +
      'expired, resolve the message with --force.',
  );
}

function leased({ consumer, eventId }: MessageDecision, until: number, now: number): MailroomError {
  return new MailroomError(
    'MESSAGE_LEASED',
    `A worker of ${consumer} may hold ${eventId} until ${time(until)}. Nothing was changed. Wait and repeat the command. --force takes ` +
      "the message from the worker now, but the worker's calls outside DynamoDB continue.",
    { retryAfterMs: Math.max(0, until - now) },
  );
}

function unreadable({ consumer, eventId, commit }: MessageDecision, problem: string): MailroomError {
  const options = commit === undefined ? '--force' : '--force and without --commit';
  return new MailroomError(
    'UNREADABLE_ROW',
    `${consumer} has a row of ${eventId} that ${unreadableText(problem)}. Nothing was changed. Run the command with the deployed ` +
      `version of cdk-mailroom. If the row was changed by hand, correct the attribute: the message then continues. Only if its work is done and no worker ` +
      `holds it, resolve it with ${options}: it is set PROCESSED without running.`,
  );
}

function effectsUnknown({ consumer, eventId }: MessageDecision, isRowDeleted: boolean): MailroomError {
  const what = isRowDeleted ? 'was deleted by hand' : 'cannot be read';
  return new MailroomError(
    'EFFECTS_UNCHECKED',
    `The row of ${eventId} at ${consumer} ${what}, so it cannot tell which side effects were started. Nothing was changed. Find out from the ` +
      'logs and the providers whether any has happened; then repeat the command with --effects-checked.',
  );
}

function fixRefused(
  { consumer, eventId }: MessageDecision,
  { code, message }: { readonly code: string; readonly message: string },
): MailroomError {
  return new MailroomError(
    'FIX_REFUSED',
    `The function of ${consumer} refused to commit the fix of ${eventId}: ${code}: ${message} Nothing was changed.`,
  );
}

/** Names the effects to find out about before a message is resolved. */
function checkText(effects: readonly StartedEffect[], areUnknown: boolean): string {
  if (areUnknown) return ' Which side effects were started is unknown: find out before you resolve it.';
  if (effects.length === 0) return '';
  const said = effects.map((effect) => ` ${effectText(effect).replace(/^e/, 'E')}.`).join('');
  return `${said} Ask its provider before you resolve it.`;
}

/** Records a decision before it is applied. @returns the ARN of the operator */
async function record(deployment: Deployment, command: string, made: MadeDecision): Promise<string> {
  const { consumer, eventId, reason, force } = made;
  const by = await deployment.operator();
  const subject = `${consumer} ${eventId}${force ? ', by force' : ''}`;
  await recordOperation(deployment, { by, reason, command, subject });
  return by;
}

/** A sentence that follows another one. */
function spaced(text: string | undefined): string {
  return text === undefined ? '' : ` ${text}`;
}

function nameOf({ consumer, eventId }: MessageDecision): string {
  return `message ${eventId} of ${consumer}`;
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
      return `A worker may hold it until ${time(state.until)}: its calls outside DynamoDB continue.`;
    case 'rejected':
      return `It is REJECTED${state.row.reason ? `, ${clipped(state.row.reason)}` : ''} now.`;
    default:
      return `It is ${state.row.status} now.`;
  }
}

async function report(
  deployment: Deployment,
  { consumer, eventId, apply: applied = false }: MessageDecision,
  { status, text, next, committed }: MessageResult,
): Promise<Report> {
  const place = await placeOf(deployment);
  const subject = { place, text: text.replace(/^m/, 'M'), next };
  const json = {
    ...place,
    consumer,
    eventId,
    applied,
    status,
    ...(committed !== undefined && { committed }),
  };
  const code = committed === false ? EXIT.attention : EXIT.ok;
  return reportOf(json, subject, (shown) => changeText(shown, deployment), code);
}
