import { Command, Option } from 'commander';
import { DELIVERY_GRACE_MS } from '../../lambdas/runtime/base/patience.ts';
import { isEventId } from '../../lambdas/runtime/store/event-id.ts';
import { auditOrRepair } from '../changes/repair/repair.ts';
import { SINCE_MS } from '../reports/audit/read-audit.ts';
import { durationArgument, InvalidArgument } from '../terminal/arguments.ts';
import type { Io } from '../terminal/io.ts';
import { reporting } from './command.ts';
import { reasonOption } from './options.ts';

/** `mailroom audit`. */
export function auditCommand(io: Io): Command {
  return new Command('audit')
    .description(
      'Checks that every published event is accounted for at every consumer that must receive it. Exits with 1 if an event is missing, ' +
        'if it cannot tell, or if anything else requires action; events that are only too recent to judge (--grace) do not count. Changes ' +
        'nothing without --apply.',
    )
    .addOption(
      new Option('--since <duration>', 'how far back to read')
        .argParser(durationArgument)
        .default(SINCE_MS, '1h'),
    )
    .addOption(
      new Option('--grace <duration>', 'an event published less than this ago may still be on its way')
        .argParser(durationArgument)
        .default(DELIVERY_GRACE_MS, '5m'),
    )
    .addOption(
      new Option(
        '--event <id>',
        'also look at the minute of this event, which may be in the future',
      ).argParser(eventIdArgument),
    )
    .option('--earlier', 'also expect events from before the current declaration of a consumer')
    .addOption(
      new Option(
        '--by <what>',
        "also show each consumer's deliveries by UTC day, and its error budget",
      ).choices(['day']),
    )
    .option(
      '--repair',
      'show which missing events would be sent, each to the one consumer that missed it, and which changed rows would be put right',
    )
    .addOption(new Option('--apply', 'make the repair').implies({ repair: true }))
    .addOption(reasonOption())
    .addHelpText(
      'after',
      `
Examples:
  $ npx cdk-mailroom audit --since 6h
  $ npx cdk-mailroom audit --since 7d --by day
  $ npx cdk-mailroom audit --since 6h --repair
  $ npx cdk-mailroom audit --since 6h --repair --apply --reason "rule drifted"`,
    )
    .action(reporting(io, auditOrRepair));
}

function eventIdArgument(text: string): string {
  if (isEventId(text)) return text;
  throw new InvalidArgument('Expected the whole id of an event, as `why` shows it.');
}
