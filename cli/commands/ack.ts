import { Command } from 'commander';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { DAY_MS } from '../../lambdas/runtime/base/units.ts';
import { recordOperation } from '../../lambdas/runtime/store/operation-record.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { placeOf, placeText } from '../deployment/place.ts';
import {
  ACK,
  ACK_MAX_MS,
  ACK_REMOVE,
  ackSubject,
  countOf,
  hasCause,
  readAcks,
} from '../reports/status/acknowledgements.ts';
import { statusFindings } from '../reports/status/status-findings.ts';
import { createStatusReader } from '../reports/status/status-reader.ts';
import { countArgument, durationArgument } from '../terminal/arguments.ts';
import { applyWords, type ChangeOptions, reasonOption, reasonToApply } from '../terminal/change.ts';
import type { Io } from '../terminal/io.ts';
import { headedList } from '../terminal/listing.ts';
import { clipped, detailedTable } from '../terminal/output.ts';
import { prose } from '../terminal/prose.ts';
import { shell } from '../terminal/shell.ts';
import { reportOf } from '../terminal/terminal.ts';
import { time } from '../terminal/times.ts';
import { timeArgument } from '../terminal/window.ts';
import { reporting } from './command.ts';

/** An acknowledgement to make or to remove. */
interface AckOptions extends ChangeOptions {
  readonly cause: string;
  /** The end that was meant, given the current time; both in epoch milliseconds. */
  readonly until?: (now: number) => number;
  readonly moreThan?: number;
}

/** `mailroom ack`. */
export function ackCommand(io: Io): Command {
  const list = new Command('list')
    .description('Lists the acknowledgements that have not ended.')
    .action(reporting(io, listAcks));
  const remove = new Command('remove')
    .description('Shows which acknowledgement would end. With --apply, ends it now.')
    .argument('<cause>', 'the cause, as ack list shows it')
    .addOption(reasonOption())
    .option('--apply', 'end it')
    .action(reporting(io, removeAck, 'cause'));
  return new Command('ack')
    .description(
      'Shows which findings of status have a known cause. With --apply, acknowledges them: until then, status does not count them as ' +
        'problems. Alarms are not changed.',
    )
    .argument('<cause>', 'a text in the findings, such as consumer:payments or the name of a rule')
    .option('--until <time>', 'when it ends, e.g. 17:00 or 2h; at most 30d (default: 30d)', untilArgument)
    .option(
      '--more-than <count>',
      'ends when a finding counts more than this (default: the present count)',
      countArgument,
    )
    .addOption(reasonOption())
    .option('--apply', 'acknowledge them')
    .action(reporting(io, acknowledge, 'cause'))
    .addCommand(list)
    .addCommand(remove);
}

/** Reads `2h`, `17:00` (the next) or a time such as `2026-11-22T17:00Z`. */
function untilArgument(text: string): (now: number) => number {
  if (/^\d+[smhd]$/.test(text)) {
    const ms = durationArgument(text);
    return (now) => now + ms;
  }
  const at = timeArgument(text);
  // A time of the day is the last one that has passed.
  return text.length <= '17:00:00'.length ? (now) => at(now) + DAY_MS : at;
}

async function acknowledge(deployment: Deployment, options: AckOptions) {
  const now = deployment.clock.now();
  const cause = options.cause.trim();
  const until = options.until?.(now) ?? now + ACK_MAX_MS;
  if (until <= now || until > now + ACK_MAX_MS) {
    throw new MailroomError(
      'BAD_ARGUMENT',
      `--until is ${time(until)}; it must be within the next 30 days (it is ${time(now)}). Nothing was changed.`,
    );
  }
  const findings = statusFindings(await createStatusReader(deployment).read(), deployment).map(
    ({ what }) => what,
  );
  const known = findings.filter((what) => hasCause(what, cause));
  if (cause.length < 3 || known.length === 0) throw noFinding(cause, findings);
  const counts = known.flatMap((what) => countOf(what) ?? []);
  const { moreThan = counts.length === 0 ? null : Math.max(...counts) } = options;
  const terms = { cause, until, upTo: moreThan };
  const end = `until ${time(until)}${moreThan === null ? '' : `, or until one counts more than ${moreThan}`}`;
  return change(deployment, options, {
    operation: { command: ACK, subject: ackSubject(terms) },
    words: [
      ...['ack', cause, '--until', new Date(until).toISOString()],
      ...(moreThan === null ? [] : ['--more-than', String(moreThan)]),
    ],
    json: { ...terms, findings: known },
    text: (seen, applied) =>
      headedList(`${applied ? 'Acknowledged' : 'Would acknowledge'} ${end}:`, seen.findings),
  });
}

async function removeAck(deployment: Deployment, options: AckOptions) {
  const cause = options.cause.trim();
  const acks = await readAcks(deployment.table, deployment.clock.now());
  const ack = acks.find((one) => one.cause === cause);
  if (ack === undefined) {
    throw new MailroomError(
      'BAD_ARGUMENT',
      `"${cause}" is not acknowledged. Nothing was changed. To see what is: \`${deployment.commandLine(shell`ack list`)}\`.`,
    );
  }
  return change(deployment, options, {
    operation: { command: ACK_REMOVE, subject: cause },
    words: ['ack', 'remove', cause],
    json: ack,
    text: (seen, applied) =>
      prose(
        `${applied ? 'Ended' : 'Would end'}: ${clipped(seen.cause)}, acknowledged by ${clipped(seen.by)} until ${time(seen.until)}.`,
      ),
  });
}

/** Plans a change, or records it, which is all that it does. @param planned.words - of the command that applies it */
async function change<Json extends object>(
  deployment: Deployment,
  options: ChangeOptions,
  planned: {
    readonly operation: { readonly command: string; readonly subject: string };
    readonly words: readonly string[];
    readonly json: Json;
    readonly text: (seen: Json, applied: boolean) => string;
  },
) {
  const reason = reasonToApply(options);
  const { operation, words, json, text } = planned;
  const applied = reason !== undefined;
  if (applied) await recordOperation(deployment, { ...operation, by: await deployment.operator(), reason });
  const place = await placeOf(deployment);
  const command = deployment.commandLine(shell`${[...words, ...applyWords(options)]}`);
  return reportOf({ ...place, ...json, applied }, json, (seen) =>
    [
      prose(placeText(place)),
      text(seen, applied),
      'Alarms are not changed.',
      ...(applied ? [] : ['Nothing was changed. To apply it:', `  ${command}`]),
    ].join('\n'),
  );
}

async function listAcks({ table, clock }: Deployment) {
  const acks = await readAcks(table, clock.now());
  return reportOf({ acks }, acks, (seen) =>
    seen.length === 0
      ? 'Nothing is acknowledged.'
      : detailedTable(
          ['until', 'up to', 'cause'],
          seen.map(({ until, upTo, cause, by, reason }) => ({
            cells: [time(until), upTo ?? '-', clipped(cause)],
            details: [`by ${clipped(by)}`, `why: ${clipped(reason)}`],
          })),
        ),
  );
}

function noFinding(cause: string, findings: readonly string[]): MailroomError {
  const known =
    findings.length === 0
      ? 'It has none now.'
      : `Its findings: ${findings.map((what) => clipped(what)).join(' | ')}`;
  return new MailroomError(
    'BAD_ARGUMENT',
    `No finding of status contains "${cause}" (at least 3 characters). Nothing was changed. ${known}`,
  );
}
