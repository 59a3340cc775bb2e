import type { DeclaredResource } from '../../deployment/declared-resources.ts';
import type { Level } from '../checks/check.ts';
import type { ProblemKind } from '../checks/problem-kinds.ts';
import type { ValueForm } from './same-value.ts';

/** The comparison of a type of resources, and the meaning of a difference. */
export interface ResourceKind {
  /** For people, e.g. `queue`. */
  readonly noun: string;
  /** The resource's name for people. @default its physical id */
  readonly nameOf?: (resource: DeclaredResource) => string;
  /** The API call that usually changes it, by its name in CloudTrail. */
  readonly call: string;
  /** The properties that name the resource, or another one that it is a part of: a changed one would be another resource. */
  readonly identity: readonly string[];
  /** A resource that does not exist. */
  readonly gone: MemberEffect;
  /**
   * Its members by path. `*` stands for each variable of an environment and each item of a list, by the item's `Id` or `Region`; a path that
   * ends with it is also about an item that only one side has. A member that is not listed is compared only if the template sets it.
   */
  readonly members: Readonly<Record<string, Member>>;
}

/** The effect of a difference. */
export interface MemberEffect {
  /** `flow`: events stop or are lost. @default settings */
  readonly level?: Level;
  /** Completes the sentence about the difference after a colon. Values are those of the template and of AWS. */
  readonly effect?: string | ((declared: unknown, deployed: unknown) => string);
  /** The API call that causes it. @default the call of the resource */
  readonly call?: string;
  /** The problems of flow checks that report the same fault. */
  readonly saidBy?: readonly ProblemKind[];
  /** Events may have been lost meanwhile, and the audit finds them. */
  readonly losesEvents?: boolean;
}

/** A member that is compared. */
export interface Member extends MemberEffect {
  /** The value that AWS uses if the template does not set it. @default none */
  readonly default?: unknown | ((resource: DeclaredResource) => unknown);
  readonly form?: ValueForm;
  /** The deployed value without the parts that others may add. @default it is compared as a whole */
  readonly without?: (declared: unknown, deployed: unknown) => unknown;
  /** True for a difference that a person may make. */
  readonly allowed?: (declared: unknown, deployed: unknown) => boolean;
  /** The words of the command that sets a value. @default none: a deployment sets it back */
  readonly set?: (resource: DeclaredResource, value: unknown) => readonly string[];
}

/** A member that a person may change. */
export const ANY = () => true;

/** The value of an option, as the AWS CLI takes it. */
export function asOption(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
