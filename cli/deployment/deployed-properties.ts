import { type AwsReads, readOnce } from './aws-reads.ts';
import { lambdaReaders } from './lambda-properties.ts';
import { messagingReaders } from './messaging-properties.ts';
import { setMembers } from './set-members.ts';
import { storageReaders } from './storage-properties.ts';

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

/** How a type of resources is read. */
export interface PropertiesReader {
  /** The properties that {@link read} returns if they are set. Others are not read. */
  readonly members: readonly string[];
  /** The IAM actions that reading needs. */
  readonly actions: readonly string[];
  /** @returns `undefined` if the resource does not exist */
  readonly read: (reads: AwsReads, resource: ResourceAddress) => Promise<Properties | undefined>;
}

/** How each type of resources is read. A type that is not listed is not read. */
export const READERS: Readonly<Record<string, PropertiesReader>> = {
  ...lambdaReaders,
  ...messagingReaders,
  ...storageReaders,
};

/**
 * The deployed properties port: the properties that resources have in AWS, in the form of a template. It only reads.
 *
 * @public
 */
export interface DeployedProperties {
  /**
   * Reads a resource. Requests that several resources share are made once.
   *
   * @param resource - of a type in {@link READERS}
   * @returns `undefined` if it does not exist
   */
  of(resource: ResourceAddress): Promise<Properties | undefined>;
}

/**
 * The deployed properties port on the reads of AWS.
 *
 * @public
 */
export function deployedProperties(each: AwsReads): DeployedProperties {
  const reads = readOnce(each);
  return {
    of: async (resource) => {
      const reader = READERS[resource.type];
      if (reader === undefined) throw new Error(`No reader for ${resource.type}`);
      const found = await reader.read(reads, resource);
      return found && setMembers(found);
    },
  };
}
