import { expect, test } from 'vitest';
import { untilOf } from '../../../verify/until.ts';

const never = new AbortController().signal;

test('a wait ends with the first answer, even after errors', async () => {
  const answers = [() => undefined, () => false as const, () => 'seen'];
  await expect(untilOf(never, { lookEveryMs: 1 })('it', async () => answers.shift()?.())).resolves.toBe(
    'seen',
  );
});

test('a wait that ends without an answer names what was not seen, and the last error', async () => {
  const failing = untilOf(never, { deadlineMs: 0 })('the queue is empty', async () => {
    throw new Error('SQS throttled');
  });
  await expect(failing).rejects.toThrow(
    'Not seen within 0 minutes: the queue is empty. The last error: SQS throttled',
  );
});

test('a wait ends when the run is stopped', async () => {
  const stop = new AbortController();
  const waiting = untilOf(stop.signal)('it', async () => {
    stop.abort(new Error('Stopped'));
    return false;
  });
  await expect(waiting).rejects.toThrow();
});
