import { Command, Option } from 'commander';
import { DELIVERY_GRACE_MS } from '../../lambdas/runtime/base/patience.ts';
import { HOUR_MS } from '../../lambdas/runtime/base/units.ts';
import { createAudit } from '../../lambdas/runtime/operations/audit/audit.ts';
import { cloudWatchQueueAges } from '../../lambdas/runtime/operations/audit/audit-queue-age.ts';
import type { AuditReport } from '../../lambdas/runtime/operations/audit/audit-report.ts';
import { eventBridgeRules } from '../../lambdas/runtime/operations/audit/eventbridge-rules.ts';
import { withNeighbors } from '../../lambdas/runtime/operations/bus-consumers.ts';
import { readEntryVersions } from '../../lambdas/runtime/operations/ssm-directory.ts';
import { repair } from '../changes/repair/audit-repair.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { auditFindings, auditJson, auditText } from '../reports/audit/audit-text.ts';
import { ruleFix } from '../reports/checks/consumer-checks.ts';
import { fixLine } from '../reports/findings/findings.ts';
import { durationArgument } from '../terminal/arguments.ts';
import { BEHIND_MAX_MS } from '../terminal/aws-clock.ts';
import {
  applyWords,
  type ChangeOptions,
  type PlannedVerdicts,
  reasonOption,
  reasonToApply,
} from '../terminal/change.ts';
import { EXIT, type Io } from '../terminal/io.ts';
import { many } from '../terminal/output.ts';
import { type ShellText, shell } from '../terminal/shell.ts';
import { reportOf } from '../terminal/terminal.ts';
import { reporting } from './command.ts';

interface AuditOptions extends ChangeOptions {
  /** Milliseconds. @default 1 hour */
  readonly since?: number;
  /** Milliseconds. @default 5 minutes */
  readonly grace?: number;
  readonly earlier?: boolean;
  readonly by?: string;
  readonly repair?: boolean;
}

/** The default of `--since`. */
const SINCE_MS = HOUR_MS;

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
    .option('--earlier', 'also expect events from before the current declaration of a consumer')
    .addOption(
      new Option(
        '--by <what>',
        "also show each consumer's deliveries by UTC day, and its error budget",
      ).choices(['day']),
    )
    .option('--repair', 'show which missing events would be sent, each to the one consumer that missed it')
    .addOption(new Option('--apply', 'send them').implies({ repair: true }))
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
    .action(reporting(io, audit));
}

/**
 * Audits the events of a range; with `repair`, plans what would be sent again, and with `apply`, sends it.
 *
 * @param planned - the plan that was confirmed @default the options alone decide
 */
export async function audit(deployment: Deployment, options: AuditOptions, planned?: PlannedVerdicts) {
  const { terminal, clients, directory, table, queues, clock } = deployment;
  const { neighbors = [] } = deployment;
  const { signal } = terminal;
  const claims = await deployment.claims?.();
  const { since = SINCE_MS, grace = DELIVERY_GRACE_MS } = options;
  const reason = reasonToApply(options);
  const until = clock.now() + BEHIND_MAX_MS; // to include the newest events
  const found = await createAudit({
    table,
    directory,
    neighbors,
    claims,
    broken: deployment.broken,
    readsPostgres: deployment.postgres !== undefined,
    queues,
    rules: eventBridgeRules(clients.events),
    ages: cloudWatchQueueAges({ cloudwatch: clients.cloudwatch, sqs: clients.sqs, clock }),
    versions: ({ name, elsewhere }) =>
      readEntryVersions(clients.ssm, elsewhere?.table ?? directory.mailroom.table, elsewhere?.name ?? name),
    clock,
  }).run({
    since: until - since,
    until,
    graceMs: grace,
    earlier: options.earlier,
    signal,
    onProgress: ({ minute, events }) =>
      terminal.progress(`Read to ${minute.replace('T', ' ')}Z: ${many(events, 'event')}`),
  });
  const repaired =
    options.repair === true && !signal.aborted
      ? await repair(onBus(deployment), found, reason, planned)
      : undefined;
  const sent = repaired?.applied === true ? repaired.events.length : 0;
  const result = { report: { ...found, repaired: sent }, byDay: options.by === 'day', repair: repaired };
  const line = (command: ShellText) => deployment.commandLine(command);
  return reportOf(
    auditJson(result),
    result,
    (seen) =>
      auditText(seen, {
        repair: line(againCommand(options, found, false)),
        apply: line(againCommand(options, found, true)),
        doctor: line(shell`doctor`),
        restore: restoreLines(deployment, found),
        recheck: {
          at: found.until - BEHIND_MAX_MS + grace,
          command: line(shell`audit ${rangeWords(options, grace)}`),
        },
      }),
    signal.aborted ? EXIT.stopped : auditFindings(result.report).length === 0 ? EXIT.ok : EXIT.attention,
  );
}

/** Repairs reach the consumers of every Mailroom on the bus. */
function onBus(deployment: Deployment): Deployment {
  const others = deployment.neighbors?.map(({ directory }) => directory) ?? [];
  return { ...deployment, directory: withNeighbors(deployment.directory, others) };
}

/** The commands that restore the drifted resources, as `status` and `doctor` print them. */
function restoreLines(deployment: Deployment, { drift }: AuditReport): string[] {
  const { mailroom, consumers } = deployment.directory;
  const fixes = drift.map((found) => {
    const entry = consumers.find(({ name }) => name === found.consumer) ?? mailroom;
    return fixLine(ruleFix(found.problem, found.rule, mailroom.bus, entry), deployment);
  });
  return [...new Set(fixes)];
}

/** The least that the range grows for a command that is worth running only once inconclusive events can be judged. */
const CONCLUSIVE_WAIT_MS = 3_600_000;

/**
 * The command that plans or applies a repair of the same events. Its range is longer by 10 minutes, the time until it is typed,
 * and if events are inconclusive, by the time until they can be judged.
 */
function againCommand(
  options: AuditOptions,
  { until, inconclusive }: AuditReport,
  apply: boolean,
): ShellText {
  const certainAt = inconclusive.map(({ conclusiveAt }) =>
    Math.max((conclusiveAt ?? 0) - until, CONCLUSIVE_WAIT_MS),
  );
  const waitMs = apply ? 0 : Math.max(0, ...certainAt);
  return shell`audit ${[
    ...rangeWords(options, waitMs),
    '--repair',
    ...(apply ? applyWords({ reason: options.reason }) : []),
  ]}`;
}

/** The options of an audit that covers the same events if it is typed within 10 minutes after a wait. */
function rangeWords(
  { since = SINCE_MS, grace = DELIVERY_GRACE_MS, earlier }: AuditOptions,
  waitMs: number,
): string[] {
  return [
    '--since',
    `${Math.ceil((since + waitMs) / 60_000) + 10}m`,
    ...(grace === DELIVERY_GRACE_MS ? [] : ['--grace', `${grace / 1_000}s`]),
    ...(earlier === true ? ['--earlier'] : []),
  ];
}
