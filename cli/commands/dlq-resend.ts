import { Command } from 'commander';
import type { Deployment } from '../deployment/deployment.ts';
import { requireNotPaused } from '../reports/checks/pauses.ts';
import type { Redriven } from '../reports/dead-letters/redrive-steps.ts';
import { resend } from '../reports/dead-letters/resend.ts';
import { consumerSource, newData, planResend } from '../reports/dead-letters/resend-plan.ts';
import { outcomeOf, resendJson, resendText } from '../reports/dead-letters/resend-report.ts';
import { findToResend } from '../reports/dead-letters/resend-search.ts';
import { deadLetterSource } from '../reports/dead-letters/sources.ts';
import { durationArgument, onceArgument } from '../terminal/arguments.ts';
import { type ChangeOptions, type PlannedVerdicts, reasonOption, reasonToApply } from '../terminal/change.ts';
import { EXIT, fileText, type Io } from '../terminal/io.ts';
import { reportOf } from '../terminal/terminal.ts';
import { reporting } from './command.ts';

interface ResendOptions extends ChangeOptions {
  readonly source: string;
  readonly id: string;
  /** The file of the new data, which a printed command repeats. */
  readonly data: string;
  readonly payload?: boolean;
  readonly repeatEffects?: boolean;
  /** Milliseconds. */
  readonly wait?: number;
}

/** `mailroom dlq resend`. */
export function resendCommand(io: Io): Command {
  return new Command('resend')
    .description(
      'Shows what the event of a dead letter would be with other data. With --apply, sends that as a new event to the consumer of the ' +
        'dead letter only; the old event never runs there again.',
    )
    .argument('<source>', 'rule:<consumer> or consumer:<consumer>')
    .argument('<id>', 'the id of the dead letter or of its event, or the first 8 or more characters')
    .requiredOption(
      '--data <file>',
      'the whole new data of the event, as JSON; - reads standard input',
      onceArgument,
    )
    .option('--apply', 'send it')
    .addOption(reasonOption())
    .option(
      '--wait <duration>',
      'wait at most this long until it is processed (default: 60s)',
      durationArgument,
    )
    .option(
      '--repeat-effects',
      'also if side effects of the old event have started: they run again under new keys',
    )
    .option('--payload', 'add the values to the changes')
    .action(
      reporting<ResendOptions>(
        io,
        (deployment, options) =>
          resendDeadLetter(deployment, options, () => fileText(io, '--data', options.data)),
        'source',
        'id',
      ),
    );
}

/**
 * Plans to send the event of a dead letter with other data; with `apply`, sends it.
 *
 * @param readData - reads the whole new data of the event, JSON
 * @param planned - the plan that was confirmed @default the options alone decide
 */
export async function resendDeadLetter(
  deployment: Deployment,
  options: ResendOptions,
  readData: () => Promise<string>,
  planned?: PlannedVerdicts,
) {
  const reason = reasonToApply(options);
  const source = consumerSource(deadLetterSource(deployment.directory, options.source));
  if (reason !== undefined) await requireNotPaused(deployment, source.consumer);
  const data = newData(await readData());
  const deadLetter = await findToResend(deployment, source, options.id);
  const { repeatEffects } = options;
  const plan = await planResend(deployment, source, deadLetter, { data, repeatEffects });
  const { judged } = plan;
  const isChanged = planned !== undefined && planned.get(judged.eventId) !== judged.verdict;
  const sends = reason !== undefined && judged.verdict === 'runs' && !isChanged;
  const redriven: Redriven | undefined = sends
    ? await resend(deployment, plan, { by: await deployment.operator(), reason }, options.wait)
    : undefined;
  const report = { plan, applied: reason !== undefined, isChanged, redriven };
  const isStopped = redriven !== undefined && deployment.terminal.signal.aborted;
  const isFine = outcomeOf(report) === 'processed' || (reason === undefined && judged.verdict === 'runs');
  return reportOf(
    resendJson(deployment, report, options),
    report,
    (seen) => resendText(deployment, seen, options),
    isStopped ? EXIT.stopped : isFine ? EXIT.ok : EXIT.attention,
  );
}
