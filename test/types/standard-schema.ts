import type { StandardSchemaV1 } from '@standard-schema/spec';

/**
 * A validator of no library, as small as the Standard Schema interface lets it be: cents in texts on the wire, in numbers
 * for the reader.
 */
export const refund: StandardSchemaV1<
  { readonly orderId: string; readonly cents: string },
  { readonly orderId: string; readonly cents: number }
> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) => {
      const { orderId, cents } = (value ?? {}) as { orderId?: unknown; cents?: unknown };
      if (typeof orderId !== 'string' || typeof cents !== 'string' || !/^\d+$/.test(cents)) {
        return { issues: [{ message: 'expected an orderId, and cents as digits', path: ['cents'] }] };
      }
      return { value: { orderId, cents: Number(cents) } };
    },
  },
};
