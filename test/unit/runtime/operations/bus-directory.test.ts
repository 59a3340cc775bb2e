import { describe, expect, test } from 'vitest';
import {
  attributesName,
  BUSES_ROOT,
  consumerClaimName,
  decodeAttributes,
  encodeAttributes,
  encodeClaim,
  readBusDirectories,
  serviceClaimName,
  sharedBusName,
} from '../../../../lambdas/runtime/operations/bus-directory.ts';

const owner = (name: string) => ({
  stack: `${name}-prod`,
  stackPath: `Prod/${name}`,
  owner: `Prod/${name}/Mailroom`,
});

describe('the directory of a bus', () => {
  test('lists the claims of each bus, and services whose names contain slashes', () => {
    const parameters = [
      { name: serviceClaimName('shop', 'payments'), value: encodeClaim(owner('Payments')) },
      { name: serviceClaimName('shop', 'eu/orders'), value: encodeClaim(owner('Orders')) },
      { name: consumerClaimName('shop', 'table-1', 'payments'), value: encodeClaim(owner('Payments')) },
      { name: serviceClaimName('bank', 'ledger'), value: encodeClaim(owner('Ledger')) },
      { name: sharedBusName('shop'), value: 'shop' },
      { name: '/mailroom/shop/services/orders', value: 'not below the buses' },
    ];
    expect(parameters.filter(({ name }) => name.startsWith(`${BUSES_ROOT}/`))).toHaveLength(5);
    expect(readBusDirectories(parameters)).toEqual([
      { bus: 'bank', services: [{ ...owner('Ledger'), service: 'ledger' }], consumers: [] },
      {
        bus: 'shop',
        services: [
          { ...owner('Orders'), service: 'eu/orders' },
          { ...owner('Payments'), service: 'payments' },
        ],
        consumers: [{ ...owner('Payments'), table: 'table-1', name: 'payments' }],
      },
    ]);
  });

  test.each(['', '[]', '{"stack":"a"}', 'null'])('names a parameter whose value is %j', (value) => {
    const name = serviceClaimName('shop', 'payments');
    expect(() => readBusDirectories([{ name, value }])).toThrow(
      `The parameter ${name} does not have the form that Mailroom writes.`,
    );
  });
});

test("a Mailroom's attributes keep their order, and their version is in the parameter's name", () => {
  const attributes = {
    bus: 'shop',
    shards: '8',
    bornLeaseMs: '30000',
    sweepRole: 'arn:aws:iam::111122223333:role/sweep',
    key: 'arn:aws:kms:eu-west-1:111122223333:key/none',
  };
  const list = encodeAttributes(attributes);
  expect(list).toEqual(Object.values(attributes));
  expect(decodeAttributes((index) => list[index] ?? '')).toEqual(attributes);
  expect(attributesName('orders')).toBe('/mailroom/orders/attributes/v1');
});
