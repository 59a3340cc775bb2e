import { errorCode, errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import { eachOf } from '../../deployment/rows-reader.ts';

/** A part of the Mailroom that is not as declared, and what repairs it. */
export interface PartProblem<Kind extends string = string> {
  /** `stream relay`, `sweep`, `bus`, `table`, `alarms`, `account`, `this machine`, or the name of a consumer. */
  readonly part: string;
  readonly problem: Kind;
  /** The problem and its effect as sentences, for people. */
  readonly text: string;
  /** The words of the command that repairs it, without region, profile and endpoint. Empty if only a person can. */
  readonly fix: readonly string[];
  /** The words of the command to run once it is repaired, without the options that select the Mailroom. */
  readonly followUp?: readonly string[];
}

/** One check: the part that it is about, the actions that it needs, and the problems that it finds. */
export interface PartCheck<Kind extends string = string> {
  readonly part: string;
  readonly needs: readonly string[];
  readonly find: () => Promise<readonly PartProblem<Kind>[]>;
}

/** The result of {@link runChecks}. */
export interface CheckedParts<Kind extends string = string> {
  readonly problems: readonly PartProblem<Kind>[];
  /** The checks that were not made because the caller may not read what they need. */
  readonly notChecked: readonly {
    /** The actions that the caller's policies lack. */
    readonly needs: readonly string[];
    /** The parts, as in {@link PartProblem}. */
    readonly parts: readonly string[];
  }[];
}

/**
 * Runs checks concurrently.
 *
 * @param done - called after each check with the number of checks made
 * @returns the problems in the order of the checks
 */
export async function runChecks<Kind extends string>(
  checks: readonly PartCheck<Kind>[],
  done: (made: number) => void = () => {},
): Promise<CheckedParts<Kind>> {
  let made = 0;
  const found = await eachOf(checks, async ({ find, ...check }) => {
    try {
      return { problems: await find(), denied: [] };
    } catch (error) {
      if (!isDenied(error)) throw error;
      return {
        problems: [],
        denied: [{ part: check.part, needs: lacking(check.needs, errorMessage(error)) }],
      };
    } finally {
      made += 1;
      done(made);
    }
  });
  const denied = found.flatMap((one) => one.denied);
  const needed = new Map(denied.map(({ needs }) => [needs.join(), needs]));
  return {
    problems: found.flatMap(({ problems }) => problems),
    notChecked: [...needed].map(([key, needs]) => ({
      needs,
      parts: [...new Set(denied.filter((check) => check.needs.join() === key).map(({ part }) => part))],
    })),
  };
}

/**
 * True if a call was denied: by AWS, whose services name it `AccessDenied` or `AccessDeniedException`, or by a local engine that does
 * not have the operation.
 */
export function isDenied(error: unknown): boolean {
  return /AccessDenied|UnknownOperation/.test(errorCode(error));
}

/** The actions that AWS names in its message; all, if it names none. */
function lacking(needs: readonly string[], message: string): readonly string[] {
  const named = needs.filter((action) => message.includes(action));
  return named.length > 0 ? named : needs;
}

/** Reads a value once. */
export function readOnce<T>(read: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => {
    result ??= read();
    return result;
  };
}
