import type { AwsReads } from './aws-reads.ts';

/** Properties of a resource under CloudFormation's names, without those that are not set. */
export type Properties = Readonly<Record<string, unknown>>;

/** A resource to read: the members of a declared resource that lead to the deployed one. */
export interface ResourceAddress {
  /** Its type in CloudFormation, e.g. `AWS::SQS::Queue`. */
  readonly type: string;
  readonly physicalId: string;
  /** The declared properties. Types whose physical id does not lead to the resource are read by those. */
  readonly properties: Properties;
}

/** The reader of a type of resources. */
export interface PropertiesReader {
  /** The properties that {@link read} returns if they are set. Others are not read. */
  readonly members: readonly string[];
  /** The IAM actions that reading needs. */
  readonly actions: readonly string[];
  /** @returns `undefined` if the resource does not exist */
  readonly read: (reads: AwsReads, resource: ResourceAddress) => Promise<Properties | undefined>;
}

/** The members that have a value. */
export function setMembers(members: Properties): Properties {
  return Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== undefined && value !== null && value !== ''),
  );
}

/** The same; `undefined` if none has. */
export function setMembersIfAny(members: Properties | undefined): Properties | undefined {
  const set = setMembers(members ?? {});
  return Object.keys(set).length === 0 ? undefined : set;
}

/** A list that is not empty. */
export function listIfAny<T>(list: readonly T[] | undefined): readonly T[] | undefined {
  return list !== undefined && list.length > 0 ? list : undefined;
}
