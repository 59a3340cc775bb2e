import { Command, InvalidArgumentError } from 'commander';
import { DAY_MS } from '../../lambdas/runtime/base/units.ts';
import { acknowledge, type NamedFinding, removeAcks } from '../changes/ack.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { readAcks } from '../reports/findings/acknowledgements.ts';
import { durationArgument } from '../terminal/arguments.ts';
import type { Io } from '../terminal/io.ts';
import { clipped, detailedTable } from '../terminal/output.ts';
import { reportOf } from '../terminal/terminal.ts';
import { time } from '../terminal/times.ts';
import { timeArgument } from '../terminal/window.ts';
import { changing, reporting } from './command.ts';
import { reasonOption } from './options.ts';

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
    .action(changing(io, removeAcks, 'findings'));
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
    .action(changing(io, acknowledge, 'findings'))
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

async function listAcks({ stored, clock }: Deployment) {
  const acks = await readAcks(stored, clock.now());
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
