import { Command, InvalidArgumentError } from 'commander';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { DAY_MS } from '../../lambdas/runtime/base/units.ts';
import { type OperationToRecord, recordOperation } from '../../lambdas/runtime/store/operation-record.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { placeOf, placeText } from '../deployment/place.ts';
import { ACK, ACK_MAX_MS, ACK_REMOVE, readAcks } from '../reports/findings/acknowledgements.ts';
import type { Finding } from '../reports/findings/findings.ts';
import { statusFindings } from '../reports/status/status-findings.ts';
import { createStatusReader } from '../reports/status/status-reader.ts';
import { durationArgument } from '../terminal/arguments.ts';
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

/** A finding as it is typed, e.g. `dead-letters/consumer:payments=12`. */
interface NamedFinding {
  /** The id of a finding, or its part: all findings of that part. */
  readonly name: string;
  /** The count above which the acknowledgement ends. @default the present one */
  readonly upTo?: number;
}

/** The acknowledgements to make or to remove. */
interface AckOptions extends ChangeOptions {
  readonly findings: readonly NamedFinding[];
  /** The end that was meant, given the current time; both in epoch milliseconds. */
  readonly until?: (now: number) => number;
}

/** `mailroom ack`. */
export function ackCommand(io: Io): Command {
  const list = new Command('list')
    .description('Lists the acknowledgements that have not ended.')
    .action(reporting(io, listAcks));
  const remove = new Command('remove')
    .description('Shows which acknowledgements would end. With --apply, ends them now.')
    .argument('<finding...>', 'the findings or parts, as ack list shows them', findingArgument)
    .addOption(reasonOption())
    .option('--apply', 'end them')
    .action(reporting(io, removeAcks, 'findings'));
  return new Command('ack')
    .description(
      'Shows which findings of status would be acknowledged. With --apply, acknowledges them: until then, status does not count them as ' +
        'problems. Alarms are not changed.',
    )
    .argument(
      '<finding...>',
      'a finding in brackets in status, such as dead-letters/consumer:payments, or a part, such as consumer:payments: all of its findings. ' +
        'With =12, until it counts more than that (default: the present count)',
      findingArgument,
    )
    .option('--until <time>', 'when it ends, e.g. 17:00 or 2h; at most 30d (default: 30d)', untilArgument)
    .addOption(reasonOption())
    .option('--apply', 'acknowledge them')
    .action(reporting(io, acknowledge, 'findings'))
    .addCommand(list)
    .addCommand(remove);
}

/** Reads `dead-letters/consumer:payments` or `dead-letters/consumer:payments=12`, after those before it. */
function findingArgument(text: string, before: readonly NamedFinding[] = []): readonly NamedFinding[] {
  const [, name = '', upTo] = /^([^=]+)(?:=(\d{1,9}))?$/.exec(text.trim()) ?? [];
  if (name === '')
    throw new InvalidArgumentError(
      'Expected a finding, e.g. dead-letters/consumer:payments or dead-letters/consumer:payments=12.',
    );
  return [...before, { name, ...(upTo !== undefined && { upTo: Number(upTo) }) }];
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

/** Finds what the names mean. @throws `BAD_ARGUMENT` if one of them means nothing, with the names that are possible */
function named<Known>(
  given: readonly NamedFinding[],
  known: readonly Known[],
  idOf: (one: Known) => string,
  none: (name: string, ids: string) => string,
): { readonly one: Known; readonly upTo: number | undefined }[] {
  const ids = known.map(idOf);
  const found = new Map<string, { readonly one: Known; readonly upTo: number | undefined }>();
  for (const { name, upTo } of given) {
    const meant = known.filter((one) => {
      const id = idOf(one).toLowerCase();
      return id === name.toLowerCase() || id.split('/')[1] === name.toLowerCase();
    });
    if (meant.length === 0)
      throw new MailroomError(
        'BAD_ARGUMENT',
        `${none(name, ids.map((id) => clipped(id)).join(', '))} Nothing was changed.`,
      );
    for (const one of meant) found.set(idOf(one), { one, upTo });
  }
  return [...found.values()];
}

async function acknowledge(deployment: Deployment, options: AckOptions) {
  const now = deployment.clock.now();
  const until = options.until?.(now) ?? now + ACK_MAX_MS;
  if (until <= now || until > now + ACK_MAX_MS) {
    throw new MailroomError(
      'BAD_ARGUMENT',
      `--until is ${time(until)}; it must be within the next 30 days (it is ${time(now)}). Nothing was changed.`,
    );
  }
  const all = statusFindings(await createStatusReader(deployment).read(), deployment);
  const known = all.filter(
    (finding): finding is Finding & { readonly id: string } => finding.id !== undefined,
  );
  const chosen = named(
    options.findings,
    known,
    ({ id }) => id,
    (name, ids) =>
      `Status has no finding "${name}". ${ids === '' ? 'It has none now.' : `Its findings: ${ids}.`}`,
  );
  const findings = chosen.map(({ one: { id, what, count }, upTo = count }) => ({ id, what, upTo }));
  return change(deployment, options, {
    operations: findings.map(({ id, upTo }) => ({
      command: ACK,
      subject: `${id} until ${new Date(until).toISOString()}${upTo === null ? '' : `, up to ${upTo}`}`,
      ...{ finding: id, until, upTo: upTo ?? undefined },
    })),
    words: [
      ...['ack', ...findings.map(({ id, upTo }) => (upTo === null ? id : `${id}=${upTo}`))],
      ...['--until', new Date(until).toISOString()],
    ],
    json: { until, findings },
    text: (seen, applied) =>
      headedList(
        `${applied ? 'Acknowledged' : 'Would acknowledge'} until ${time(until)}:`,
        seen.findings.map(
          ({ id, what, upTo }) =>
            `${what} [${id}]${upTo === null ? '' : `, until it counts more than ${upTo}`}`,
        ),
      ),
  });
}

async function removeAcks(deployment: Deployment, options: AckOptions) {
  const known = await readAcks(deployment.table, deployment.clock.now());
  const chosen = named(
    options.findings,
    known,
    ({ finding }) => finding,
    (name, ids) => `"${name}" is not acknowledged. ${ids === '' ? 'Nothing is.' : `Acknowledged: ${ids}.`}`,
  );
  const acks = chosen.map(({ one }) => one);
  const ids = acks.map(({ finding }) => finding);
  return change(deployment, options, {
    operations: ids.map((finding) => ({ command: ACK_REMOVE, subject: finding, finding })),
    words: ['ack', 'remove', ...ids],
    json: { acks },
    text: (seen, applied) =>
      headedList(
        applied ? 'Ended:' : 'Would end:',
        seen.acks.map(
          ({ finding, by, until }) =>
            `${clipped(finding)}, acknowledged by ${clipped(by)} until ${time(until)}`,
        ),
      ),
  });
}

/** Plans a change, or records it, which is all that it does. @param planned.words - of the command that applies it */
async function change<Json extends object>(
  deployment: Deployment,
  options: ChangeOptions,
  planned: {
    readonly operations: readonly Omit<OperationToRecord, 'by' | 'reason'>[];
    readonly words: readonly string[];
    readonly json: Json;
    readonly text: (seen: Json, applied: boolean) => string;
  },
) {
  const reason = reasonToApply(options);
  const { operations, words, json, text } = planned;
  const applied = reason !== undefined;
  if (applied) {
    const by = await deployment.operator();
    for (const operation of operations) await recordOperation(deployment, { ...operation, by, reason });
  }
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
          ['until', 'up to', 'finding'],
          seen.map(({ until, upTo, finding, by, reason }) => ({
            cells: [time(until), upTo ?? '-', clipped(finding)],
            details: [`by ${clipped(by)}`, `why: ${clipped(reason)}`],
          })),
        ),
  );
}
