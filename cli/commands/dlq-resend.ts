import { readFile } from 'node:fs/promises';
import { Command } from 'commander';
import { errorMessage, MailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { Deployment } from '../deployment/deployment.ts';
import type { Redriven } from '../reports/dead-letters/redrive-steps.ts';
import { resend } from '../reports/dead-letters/resend.ts';
import { consumerSource, newData, planResend, type ResendPlan } from '../reports/dead-letters/resend-plan.ts';
import { outcomeOf, resendJson, resendText } from '../reports/dead-letters/resend-report.ts';
import { findToResend } from '../reports/dead-letters/resend-search.ts';
import { deadLetterSource } from '../reports/dead-letters/sources.ts';
import { requireNotPaused } from '../reports/status/pauses.ts';
import { durationArgument, onceArgument } from '../terminal/arguments.ts';
import { type ChangeOptions, reasonOption, reasonToApply } from '../terminal/change.ts';
import { EXIT, type ExitCode, type Io } from '../terminal/io.ts';
import { withDeployment } from './command.ts';

interface ResendOptions extends ChangeOptions {
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
      withDeployment<[string, string], ResendOptions>(io, async (deployment, options, name, id) => {
        const reason = reasonToApply(options);
        const source = consumerSource(deadLetterSource(deployment.directory, name));
        if (reason !== undefined) await requireNotPaused(deployment, source.consumer);
        const data = newData(await textOfData(io, options.data));
        const deadLetter = await findToResend(deployment, source, id);
        const plan = await planResend(deployment, source, deadLetter, {
          data,
          repeatEffects: options.repeatEffects,
        });
        return finish(deployment, plan, reason, options);
      }),
    );
}

async function finish(
  deployment: Deployment,
  plan: ResendPlan,
  reason: string | undefined,
  options: ResendOptions,
): Promise<ExitCode> {
  const { judged } = plan;
  const { planned } = deployment;
  const isChanged = planned !== undefined && planned.get(judged.eventId) !== judged.verdict;
  const sends = reason !== undefined && judged.verdict === 'runs' && !isChanged;
  const redriven: Redriven | undefined = sends
    ? await resend(deployment, plan, { by: await deployment.operator(), reason }, options.wait)
    : undefined;
  const report = { plan, applied: reason !== undefined, isChanged, redriven };
  deployment.output.result(resendJson(deployment, report, options), report, (seen) =>
    resendText(deployment, seen, options),
  );
  if (redriven !== undefined && deployment.signal.aborted) return EXIT.stopped;
  return outcomeOf(report) === 'processed' || (reason === undefined && judged.verdict === 'runs')
    ? EXIT.ok
    : EXIT.attention;
}

/** @throws `BAD_ARGUMENT` if the file cannot be read */
async function textOfData(io: Io, file: string): Promise<string> {
  if (file === '-') return (await io.input?.()) ?? '';
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new MailroomError('BAD_ARGUMENT', `--data: ${errorMessage(error)}`);
  }
}
