import { StringParameter } from 'aws-cdk-lib/aws-ssm';
import type { Construct } from 'constructs';
import { inboxNamePath } from '../../lambdas/runtime/operations/directory.ts';
import { consumerNameProblems } from '../checks/names.ts';
import { unless } from '../checks/refusal.ts';

/** An earlier name of a consumer. */
export interface EarlierName {
  /** The name. */
  readonly name: string;
  /**
   * When its function stopped running under that name. Under the new name, an event from before then runs only if its inbox row
   * exists: it may have been processed under the old name.
   */
  readonly until: Date;
}

/** Validates the earlier names of a consumer. */
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
        `${where}.name is "${name}", the current name. List only earlier names, oldest first.`,
      ),
      ...unless(
        same === index,
        `${where}.name is "${earlier.name}", the same as movedFrom[${same}]. Give the consumer a name that it never had.`,
      ),
      ...unless(
        isTime,
        `${where}.until is ${earlier.until}, but must be a valid date, e.g. new Date('2026-11-21T10:00:00Z').`,
      ),
      ...unless(
        !isTime || before === undefined || !(earlier.until <= before),
        `${where}.until is ${isTime && earlier.until.toISOString()}, but must be after ` +
          `${before?.toISOString()}, that of the previous entry. List the oldest name first.`,
      ),
    ];
  });
}

/**
 * Makes CloudFormation refuse an undeclared change of a consumer's name: the inbox under the new name would be empty, and every
 * redelivered event would run again.
 *
 * Each name has a parameter. The parameter's name is derived from the queue, which stays; its logical id is derived from the
 * consumer's name. After an undeclared change, CloudFormation has to create a parameter under a name that is taken, because it
 * deletes the old one only after updating everything else. A declared change keeps the old parameter and creates another.
 *
 * @param names - the earlier names, oldest first, then the current one
 * @returns the parameters that must be deployed before the rest of the consumer changes
 */
export function pinName(
  scope: Construct,
  table: string,
  queueName: string,
  names: readonly string[],
): StringParameter[] {
  return names.map(
    (name, index) =>
      new StringParameter(scope, `Name${index}-${name}`, {
        parameterName: inboxNamePath(table, queueName, index),
        description: 'Keeps the name of a consumer from changing unless movedFrom declares the change.',
        stringValue: name,
        simpleName: false,
      }),
  );
}

/** When the inbox of a consumer's current name began, epoch milliseconds; `undefined` if it never had another name. */
export function inboxSince(movedFrom: readonly EarlierName[] = []): number | undefined {
  return movedFrom.at(-1)?.until.getTime();
}
