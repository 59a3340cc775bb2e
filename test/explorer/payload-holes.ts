import { isMailroomError } from '../../lambdas/runtime/base/errors.ts';
import { poison } from '../../lambdas/runtime/base/poison.ts';
import type { PayloadTamper } from './payload-scenarios.ts';
import type { Hole } from './relay-holes.ts';

/** The rules of a payload in S3, one by one. */
export const PAYLOAD_HOLES: readonly Hole<PayloadTamper>[] = [
  {
    rule: 'the object is written before the transaction of its event',
    where: 'committed and received',
    tamper: {
      payloads: (real, { dry }, later) => ({
        ...real,
        write: async (payload) => {
          later.push(() => real.write(payload));
          return dry.write(payload);
        },
      }),
    },
    found: /A committed event has never had its object/,
  },
  {
    rule: 'the bytes of an object are verified',
    where: 'that is altered',
    needs: { deviations: 1 },
    tamper: {
      payloads: (real, { now }) => ({
        ...real,
        read: async ({ payload }) => {
          await real.read({ type: '', payload }).catch(() => {});
          return JSON.parse(Buffer.from(now.get(payload.key) ?? '').toString());
        },
      }),
    },
    found: /A handler received other bytes than were committed/,
  },
  {
    rule: 'an outage of S3 rejects no message',
    where: 'committed and received',
    needs: { faults: 1, deviations: 1 },
    tamper: {
      payloads: (real) => ({
        ...real,
        read: async (event) => {
          try {
            return await real.read(event);
          } catch (error) {
            throw isMailroomError(error, 'PAYLOADS_UNAVAILABLE')
              ? poison('PAYLOAD_MISSING', 'It is away.')
              : error;
          }
        },
      }),
    },
    found: /The message is REJECTED \(PAYLOAD_MISSING\), and its object was there/,
  },
];
