import { StringParameter } from 'aws-cdk-lib/aws-ssm';
import type { Construct } from 'constructs';
import { inboxNamePath } from '../lambdas/runtime/operations/directory.ts';
import { consumerNameProblems } from './names.ts';
import { unless } from './refusal.ts';

/** A name that a consumer had before. */
export interface EarlierName {
  /** The name. */
  readonly name: string;
  /**
   * When its function stopped working under that name. Under the new name an event from before is not run unless its row is there: it may
   * have been processed under this one.
   */
  readonly until: Date;
}

/** What is wrong with the earlier names of a consumer. */
export function earlierNameProblems(name: string, movedFrom: readonly EarlierName[]): string[] {
  return movedFrom.flatMap((earlier, index) => {
    const where = `movedFrom[${index}]`;
    const same = movedFrom.findIndex((other) => other.name === earlier.name);
    const before = movedFrom[index - 1]?.until;
    const isTime = !Number.isNaN(earlier.until.getTime());
    return [
      ...consumerNameProblems(earlier.name).map((problem) => `${where}.${problem}`),
      ...unless(
        earlier.name !== name,
        `${where}.name is "${name}", the name that it has now. List only earlier names, the oldest first.`,
      ),
      ...unless(
        same === index,
        `${where}.name is "${earlier.name}", which movedFrom[${same}] has too. Give a consumer a name that it never had.`,
      ),
      ...unless(
        isTime,
        `${where}.until is ${earlier.until}, but must be a time, e.g. new Date('2026-11-21T10:00:00Z').`,
      ),
      ...unless(
        !isTime || before === undefined || !(earlier.until <= before),
        `${where}.until is ${isTime && earlier.until.toISOString()}, but must be after ` +
          `${before?.toISOString()}, the time before it. List the oldest name first.`,
      ),
    ];
  });
}

/**
 * Makes CloudFormation refuse a change of a consumer's name that is not stated: its inbox would be an empty one, and every event that
 * comes back would run again.
 *
 * Each name has a parameter, whose own name is made of the queue's, which stays, and whose logical id is made of the
 * consumer's. After a change that is not stated CloudFormation has to create a parameter under a name that is taken: it deletes the former
 * one only when everything else was updated. A change that is stated keeps the former parameter and creates another.
 *
 * @param names - the earlier names, oldest first, and the one it has
 * @returns what has to be there before anything else of the consumer changes
 */
export function fixName(
  scope: Construct,
  table: string,
  queueName: string,
  names: readonly string[],
): StringParameter[] {
  return names.map(
    (name, index) =>
      new StringParameter(scope, `Name${index}-${name}`, {
        parameterName: inboxNamePath(table, queueName, index),
        description: 'The name of a consumer must not change unless movedFrom states it.',
        stringValue: name,
        simpleName: false,
      }),
  );
}
