import type { EntryStack } from '../../lambdas/runtime/operations/directory.ts';

/**
 * Stands for a declared value that only AWS knows, for example the result of a dynamic reference. It is not compared. A text with an unknown
 * part is unknown as a whole.
 */
export const UNKNOWN: unique symbol = Symbol('a value that only AWS knows');

/**
 * The declarations port: the resources of the deployed Mailroom as their stacks declare them. It only reads.
 */
export interface Declarations {
  /**
   * The resources of a stack that belong to this Mailroom. Each stack is read once.
   *
   * @returns `undefined` if CloudFormation has no such stack
   * @throws `NOT_COMPARED` with the reason: its template is not JSON, or the stack is being deployed
   */
  of(stack: EntryStack): Promise<readonly DeclaredResource[] | undefined>;
}

/**
 * A resource of a stack.
 */
export interface DeclaredResource {
  /** Its type in CloudFormation, e.g. `AWS::SQS::Queue`. */
  readonly type: string;
  readonly logicalId: string;
  /** The value of `Ref` for most types: a queue's URL, a function's name, `bus|rule` for a rule on a custom bus. */
  readonly physicalId: string;
  readonly stack: EntryStack;
  /** The name of a consumer, or as `PartProblem.part`: `stream relay`, `sweep`, `table`, `bus`, `alarms`. */
  readonly part: string;
  /** Its properties under CloudFormation's names, with all references resolved. A value that cannot be resolved is {@link UNKNOWN}. */
  readonly properties: Readonly<Record<string, unknown>>;
}
