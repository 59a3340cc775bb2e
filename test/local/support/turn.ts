import { DeleteParameterCommand, PutParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { expect } from 'vitest';
import { eventually } from './eventually.ts';

/** A part of the order system that tests of several files change, or expect to be unchanged. */
type SharedPart = 'wiring' | 'dead-events' | 'dead-letters-of-inventory';

/**
 * Waits until no other test holds a part of the order system, and holds it. Files run side by side on the same system, so a
 * test that asserts everything in a part holds it, as does a test that changes it.
 *
 * @returns releases the part
 *
 * @example
 * ```ts
 * onTestFinished(await turnAt('wiring'));
 * ```
 */
export async function turnAt(part: SharedPart): Promise<() => Promise<void>> {
  const ssm = new SSMClient({});
  const Name = `/turns/${part}`;
  const Value = expect.getState().currentTestName ?? part;
  // A name that exists is refused: the engine lets one test in.
  await eventually(() => ssm.send(new PutParameterCommand({ Name, Type: 'String', Value })));
  return async () => {
    await ssm.send(new DeleteParameterCommand({ Name }));
  };
}
