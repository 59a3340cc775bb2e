import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { areChecked } from '../../../lambdas/runtime/inbox/started-effects.ts';
import { placeOf } from '../../deployment/place.ts';
import { choose, type DeadLetterChoice } from '../../reports/dead-letters/choice.ts';
import { asDeployed, deadLetterSource, putBack } from '../../reports/dead-letters/dead-letters.ts';
import type { ChangeOptions } from '../../terminal/change.ts';
import { EXIT } from '../../terminal/io.ts';
import type { OperatorChange } from '../change.ts';
import { asPlanned, receiveForChange } from '../planned-dead-letters.ts';
import { stays } from './discard-one.ts';
import {
  type DiscardFlags,
  type DiscardPlan,
  type DiscardStep,
  effectsOf,
  planDiscard,
  ruleOf,
} from './discard-plan.ts';
import { discardJson, discardText } from './discard-report.ts';
import { discardAll } from './discard-steps.ts';

interface DiscardOptions extends ChangeOptions, DeadLetterChoice, DiscardFlags {
  readonly source: string;
  readonly all?: boolean;
}

/** The most dead letters of one run. */
export const DISCARD_MAX = 1_000;

/** If the command dies, dead letters reappear after this many seconds. */
const DISCARD_HIDES_S = 300;

/** `mailroom dlq discard`. */
export const discard: OperatorChange<
  DiscardOptions,
  DiscardPlan,
  readonly DiscardStep[],
  ReturnType<typeof discardJson>
> = {
  plan: async (deployment, options, planned) => {
    const source = deadLetterSource(deployment.directory, options.source);
    const { ids = [], cause, all = false, reject = false } = options;
    if ((ids.length > 0 || cause !== undefined) === all) {
      throw new MailroomError(
        'BAD_ARGUMENT',
        `Select the dead letters of ${options.source} by id, with --cause, or with --all.`,
      );
    }
    if (reject && source.kind !== 'consumer' && source.kind !== 'rule') {
      throw new MailroomError(
        'BAD_ARGUMENT',
        `--reject runs a consumer's rejected function, and ${options.source} has no messages of a consumer.`,
      );
    }
    const place = await placeOf(deployment);
    const limits = { limit: DISCARD_MAX, hideS: DISCARD_HIDES_S, planned };
    const { deadLetters: received } = await receiveForChange(deployment, source, limits);
    try {
      const { chosen: found, choice } = choose(deployment, source, received, { ids, cause }, planned);
      const chosen = await asDeployed(deployment, source, found);
      const effectsChecked = areChecked(options.effectsChecked ?? false, effectsOf(chosen, reject));
      const steps = await planDiscard(deployment, source, chosen, { reject, effectsChecked });
      const still = asPlanned(
        planned,
        steps,
        ({ deadLetter }) => deadLetter,
        ({ outcome }) => outcome,
      );
      const rule = await ruleOf(deployment, source, still.same);
      return { place, source, choice, received, effectsChecked, rule, ...still };
    } catch (error) {
      await putBack(deployment.queues, source, received);
      throw error;
    }
  },
  apply: (deployment, { source, same, effectsChecked }, { reason, reject = false }) =>
    discardAll(deployment, source, same, { reject, effectsChecked, reason }),
  result: (_deployment, { plan, made }, options) => {
    const isStopped = made?.some(({ outcome }) => outcome === 'untried');
    const isPartial = made?.some(({ outcome }) => stays(outcome)) || (made && plan.changed.length > 0);
    return {
      json: discardJson(plan, made, options),
      exitCode: isStopped ? EXIT.stopped : isPartial ? EXIT.attention : EXIT.ok,
    };
  },
  text: (deployment, { plan, made }, options) => discardText(deployment, plan, made, options),
  release: ({ queues }, { source, received }) => putBack(queues, source, received),
};
