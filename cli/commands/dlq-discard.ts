import { Command } from 'commander';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { areChecked } from '../../lambdas/runtime/inbox/started-effects.ts';
import { stays } from '../changes/discard/discard-one.ts';
import { effectsOf, planDiscard } from '../changes/discard/discard-plan.ts';
import { type DiscardFlags, discardJson, discardText } from '../changes/discard/discard-report.ts';
import { discardAll } from '../changes/discard/discard-steps.ts';
import { asPlanned, receiveForChange } from '../changes/planned-dead-letters.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { placeOf } from '../deployment/place.ts';
import { choose, type DeadLetterChoice } from '../reports/dead-letters/choice.ts';
import { verboseOption } from '../reports/dead-letters/dead-letter-text.ts';
import { asDeployed, deadLetterSource, putBack } from '../reports/dead-letters/dead-letters.ts';
import { SOURCE_ARGUMENT } from '../terminal/arguments.ts';
import {
  type ChangeOptions,
  effectsCheckedOption,
  type PlannedVerdicts,
  reasonOption,
  reasonToApply,
} from '../terminal/change.ts';
import { EXIT, type Io } from '../terminal/io.ts';
import { type Report, reportOf } from '../terminal/terminal.ts';
import { reporting } from './command.ts';

interface DiscardOptions extends ChangeOptions, DeadLetterChoice, DiscardFlags {
  readonly source: string;
  readonly all?: boolean;
}

/** The most dead letters of one run. */
const LIMIT = 1_000;

/** If the command dies, dead letters reappear after this many seconds. */
const DISCARD_HIDES_S = 300;

/** `mailroom dlq discard`. */
export function discardCommand(io: Io): Command {
  return new Command('discard')
    .description('Shows which dead letters would be discarded. With --apply, discards them and stores why.')
    .argument('<source>', SOURCE_ARGUMENT)
    .argument('[id...]', 'dead letters: their ids or event ids, or the first 8 or more characters')
    .option('--cause <text>', 'dead letters with this text in their cause (any case)')
    .option('--all', `every dead letter of the source (at most ${LIMIT} per run)`)
    .option('--reject', "have the consumer commit what its handler's rejected function returns")
    .addOption(effectsCheckedOption())
    .option('--apply', 'discard them')
    .addOption(reasonOption())
    .addOption(verboseOption())
    .action(reporting(io, discardDeadLetters, 'source', 'ids'));
}

/**
 * Plans a discard; with `apply`, makes it.
 *
 * @param planned - the plan that was confirmed @default the options alone decide
 */
export async function discardDeadLetters(
  deployment: Deployment,
  options: DiscardOptions,
  planned?: PlannedVerdicts,
): Promise<Report<ReturnType<typeof discardJson>>> {
  const source = deadLetterSource(deployment.directory, options.source);
  const { ids = [], cause, all = false } = options;
  const reason = reasonToApply(options);
  const applied = reason !== undefined;
  if ((ids.length > 0 || cause !== undefined) === all) {
    throw new MailroomError(
      'BAD_ARGUMENT',
      `Select the dead letters of ${options.source} by id, with --cause, or with --all.`,
    );
  }
  const { reject = false } = options;
  if (reject && source.kind !== 'consumer' && source.kind !== 'rule') {
    throw new MailroomError(
      'BAD_ARGUMENT',
      `--reject runs a consumer's rejected function, and ${options.source} has no messages of a consumer.`,
    );
  }
  const place = await placeOf(deployment);
  const limits = { limit: LIMIT, hideS: DISCARD_HIDES_S, planned };
  const { deadLetters } = await receiveForChange(deployment, source, limits);
  try {
    const { chosen: found, choice } = choose(deployment, source, deadLetters, { ids, cause }, planned);
    const chosen = await asDeployed(deployment, source, found);
    const effectsChecked = areChecked(options.effectsChecked ?? false, effectsOf(chosen, reject));
    const plan = await planDiscard(deployment, source, chosen, { reject, effectsChecked });
    const { same, changed } = asPlanned(
      planned,
      plan,
      ({ deadLetter }) => deadLetter,
      ({ outcome }) => outcome,
    );
    const steps =
      reason === undefined
        ? same
        : await discardAll(deployment, source, same, { reject, effectsChecked, reason });
    const report = { place, source, applied, reason: options.reason, steps, changed };
    const isStopped = steps.some(({ outcome }) => outcome === 'untried');
    const isPartial = applied && (steps.some(({ outcome }) => stays(outcome)) || changed.length > 0);
    return reportOf(
      discardJson(report),
      { report, choice },
      (seen) => discardText(deployment, seen.report, seen.choice, options),
      isStopped ? EXIT.stopped : isPartial ? EXIT.attention : EXIT.ok,
    );
  } finally {
    await putBack(deployment.queues, source, deadLetters);
  }
}
