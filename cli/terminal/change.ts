import { MailroomError } from '../../lambdas/runtime/base/errors.ts';

/** The options of a command that plans a change, and makes it with `--apply`. */
export interface ChangeOptions {
  readonly apply?: boolean;
  /** Why; required with `apply`. */
  readonly reason?: string;
}

/**
 * The verdicts of a plan that an operator has confirmed: by the id of a dead letter, or by `<event id> <consumer>` for a repair. A
 * change that is bound to them applies to nothing else, and leaves alone what has another verdict now.
 */
export type PlannedVerdicts = ReadonlyMap<string, string>;

/**
 * The reason of a change that is made; `undefined` for a plan.
 *
 * @throws `BAD_ARGUMENT` if the change is made without a reason
 *
 * @example
 * ```ts
 * reasonToApply({ apply: true, reason: 'the bank is back' }); // 'the bank is back'
 * reasonToApply({ reason: 'the bank is back' }); // undefined
 * ```
 */
export function reasonToApply({ apply, reason }: ChangeOptions): string | undefined {
  if (apply !== true) return undefined;
  if (reason !== undefined) return reason;
  throw new MailroomError(
    'BAD_ARGUMENT',
    '--apply needs a reason, which is stored with the change: for example --reason "the bank is back". Nothing was changed.',
  );
}

/** The reason in a printed command if none was given. `reasonArgument` refuses it until the operator has replaced it. */
const TO_WRITE = '…';

/** The words that make a planned change: `--apply`, and the reason that the plan was given. */
export function applyWords({ reason = TO_WRITE }: Pick<ChangeOptions, 'reason'>): string[] {
  return ['--apply', '--reason', reason];
}
