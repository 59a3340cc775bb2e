import { Command } from 'commander';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { isFinal } from '../../lambdas/runtime/inbox/inbox-state.ts';
import { allow } from '../changes/settle/allowance.ts';
import { applyResolution } from '../changes/settle/applied-resolution.ts';
import { ended, type MessageDecision, type MessageResult } from '../changes/settle/message-decision.ts';
import { readResolution } from '../changes/settle/resolution.ts';
import { resolutionPlan } from '../changes/settle/resolution-plan.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { wholeEventId } from '../deployment/event-prefix.ts';
import { changeText, placeOf } from '../deployment/place.ts';
import { onceArgument } from '../terminal/arguments.ts';
import { effectsCheckedOption, reasonOption, reasonToApply } from '../terminal/change.ts';
import { EXIT, type Io } from '../terminal/io.ts';
import { type Report, reportOf } from '../terminal/terminal.ts';
import { reporting } from './command.ts';

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
