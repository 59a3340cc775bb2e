import { Command, Option } from 'commander';
import { eventBridgeRules } from '../lambdas/runtime/bus/eventbridge-rules.ts';
import { type AuditReport, createAudit } from '../lambdas/runtime/operations/audit/audit.ts';
import { cloudWatchQueueAges } from '../lambdas/runtime/operations/audit/audit-queue-age.ts';
import { repairMissing } from '../lambdas/runtime/operations/audit/audit-repair.ts';
import { readEntryVersions } from '../lambdas/runtime/operations/ssm-directory.ts';
import { auditFindings, auditText } from './audit-text.ts';
import { durationArgument, reasonArgument } from './frame/arguments.ts';
import { BEHIND_MAX_MS } from './frame/aws-clock.ts';
import { withSession } from './frame/command.ts';
import { EXIT, type ExitCode, type Io } from './frame/io.ts';
import { many } from './frame/output.ts';
import type { Session } from './frame/session.ts';
import { type ShellText, shell } from './frame/shell.ts';

interface AuditOptions {
  /** Milliseconds. */
  readonly since: number;
  /** Milliseconds. */
  readonly grace: number;
  readonly earlier?: boolean;
  readonly repair?: boolean;
  readonly reason: string;
}

/** `mailroom audit`. */
export function auditCommand(io: Io): Command {
  return new Command('audit')
    .description(
      'Checks that every published event is accounted for at every consumer that must receive it. Exits with 1 if an event is missing ' +
        'or anything else requires action.',
    )
    .addOption(
      new Option('--since <duration>', 'how far back to read')
        .argParser(durationArgument)
        .default(3_600_000, '1h'),
    )
    .addOption(
      new Option('--grace <duration>', 'an event published less than this ago may still be on its way')
        .argParser(durationArgument)
        .default(300_000, '5m'),
    )
    .option('--earlier', 'also expect events from before the current declaration of a consumer')
    .option('--repair', 'send each missing event to the one consumer that never received it')
    .option('--reason <text>', 'why; stored with the repair', reasonArgument, 'not given')
    .addHelpText(
      'after',
      `
Examples:
  $ mailroom audit --since 6h
  $ mailroom audit --since 6h --repair --reason "the rule had drifted"`,
    )
    .action(withSession(io, audit));
}

async function audit(session: Session, options: AuditOptions): Promise<ExitCode> {
  const { output, signal, directory, table, queues, clock } = session;
  const until = clock.now() + BEHIND_MAX_MS; // to include the newest events
  const found = await createAudit({
    table,
    directory,
    queues,
    rules: eventBridgeRules(session.events),
    ages: cloudWatchQueueAges(session),
    versions: ({ name }) => readEntryVersions(session.ssm, directory.mailroom.table, name),
    clock,
  }).run({
    since: until - options.since,
    until,
    graceMs: options.grace,
    earlier: options.earlier,
    signal,
    onProgress: ({ minute, events }) =>
      output.progress(`Read to ${minute.replace('T', ' ')}Z: ${many(events, 'event')}`),
  });
  const report =
    options.repair === true && !signal.aborted ? await repaired(session, found, options.reason) : found;
  output.result(report, report, (seen) => auditText(seen, session.commandLine(repairCommand(options))));
  if (signal.aborted) return EXIT.stopped;
  return auditFindings(report).length === 0 ? EXIT.ok : EXIT.attention;
}

/** The command that repairs. Its range is 10 minutes longer, so that it still covers the same events when it is run. */
function repairCommand({ since, earlier }: AuditOptions): ShellText {
  const minutes = Math.ceil(since / 60_000) + 10;
  const all = earlier === true ? ['--earlier', '--repair'] : ['--repair'];
  return shell`audit --since ${`${minutes}m`} ${all} --reason "why"`;
}

async function repaired(session: Session, report: AuditReport, reason: string): Promise<AuditReport> {
  if (report.missing.length === 0) return report;
  const { sent, unsent } = await repairMissing(session, report.missing, {
    by: await session.operator(),
    reason,
  });
  for (const { eventId, consumer, why } of unsent)
    session.output.say(`${eventId} was not sent to ${consumer}: ${why}.`);
  return { ...report, repaired: sent.length };
}
