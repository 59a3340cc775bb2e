import { DAY_MS } from '../../../lambdas/runtime/base/units.ts';
import type { PlaceInOrder } from '../../../lambdas/runtime/store/inbox-row.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { type Operation, readOperations } from '../../deployment/operations.ts';

/** Returns the operator's change that passed over a number; `undefined` if the log has none. */
export type PassedOver = (place: Pick<PlaceInOrder, 'key' | 'sequence'>) => Operation | undefined;

/** The period of the log that is read. */
const LOG_MS = 90 * DAY_MS;

/** Reads the changes of operators that passed over numbers: `order skip` and `order seed`. */
export async function readPassedOver(
  { stored }: Pick<Deployment, 'stored'>,
  now: number,
): Promise<PassedOver> {
  const { operations } = await readOperations(stored, now - LOG_MS, now);
  const changes = operations.flatMap((operation) => {
    const { command, subject } = operation;
    if (command !== 'order skip' && command !== 'order seed') return [];
    // As `skipSequence` and `seedSequence` record it.
    const end = subject.lastIndexOf(' ');
    return [
      {
        operation,
        key: subject.slice(0, end),
        to: Number(subject.slice(end + 1)),
        isSeed: command === 'order seed',
      },
    ];
  });
  return ({ key, sequence }) =>
    changes.find(
      (change) => change.key === key && (change.isSeed ? change.to >= sequence : change.to === sequence),
    )?.operation;
}
