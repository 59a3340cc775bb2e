import { describe, expect, test, vi } from 'vitest';
import { discardOne } from '../../../cli/changes/discard/discard-one.ts';

const note = { by: 'ada', reason: 'the customer left' };

describe('a dead letter whose consumer rejects it', () => {
  const settledAs = async (settled: object) => {
    const remove = vi.fn(async () => {});
    const deps = { queues: { remove }, reject: async () => settled, table: { get: async () => undefined } };
    const source = { kind: 'consumer', url: 'queue', consumer: { name: 'worker' } };
    const deadLetter = { id: 'm1', received: { body: '{}', receiptHandle: 'r' } };
    const { outcome } = await discardOne(deps as never, source as never, deadLetter as never, note);
    return { outcome, removed: remove.mock.calls.length };
  };

  test('is deleted if its handler had processed it', async () => {
    expect(await settledAs({ status: 'processed' })).toEqual({ outcome: 'handled', removed: 1 });
  });

  test.each(['received', 'postponed'])(
    'stays if the function answers %s, which settles nothing',
    async (status) => {
      expect(await settledAs({ status })).toEqual({ outcome: 'not-rejectable', removed: 0 });
    },
  );
});
