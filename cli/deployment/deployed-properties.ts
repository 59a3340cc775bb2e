import { type AwsReads, readOnce } from './aws-reads.ts';
import { lambdaReaders } from './lambda-properties.ts';
import { messagingReaders } from './messaging-properties.ts';
import {
  type Properties,
  type PropertiesReader,
  type ResourceAddress,
  setMembers,
} from './properties-reader.ts';
import { storageReaders } from './storage-properties.ts';

/** The readers by type. A type that is not listed is not read. */
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
