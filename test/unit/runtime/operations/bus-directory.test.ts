import { SSMClient } from '@aws-sdk/client-ssm';
import { describe, expect, test } from 'vitest';
import { withNeighbors } from '../../../../lambdas/runtime/operations/bus-consumers.ts';
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
import { consumerEntryName, mailroomEntryName } from '../../../../lambdas/runtime/operations/directory.ts';
import { readNeighbors } from '../../../../lambdas/runtime/operations/ssm-directory.ts';
import { STUB_CONFIGURATION, stubHandler } from '../../../support/stub-client.ts';
import { directory as small, worker } from '../../cli/support/mailroom-in-memory.ts';

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

  test.each(['', '[]', '{"stack":"a"}', 'null'])('keeps a claim whose value is %j, and names it', (value) => {
    const [service, consumer] = [
      serviceClaimName('shop', 'payments'),
      consumerClaimName('shop', 'table-1', 'pay'),
    ];
    const parameters = [service, consumer].map((name) => ({ name, value }));
    expect(readBusDirectories(parameters)).toEqual([
      {
        bus: 'shop',
        services: [{ service: 'payments', stack: service, owner: service }],
        consumers: [{ table: 'table-1', name: 'pay', stack: 'table-1', owner: consumer }],
        faults: [consumer, service].map((parameter) => ({
          parameter,
          fault: expect.stringContaining(
            `The parameter ${parameter} does not have the form that Mailroom writes: `,
          ),
        })),
      },
    ]);
  });
});

test("a Mailroom's attributes keep their order, and their version is in the parameter's name", () => {
  const attributes = {
    bus: 'shop',
    shards: '8',
    bornLeaseMs: '30000',
    sweepRole: 'arn:aws:iam::111122223333:role/sweep',
    key: 'arn:aws:kms:eu-west-1:111122223333:key/none',
    auditors: 'arn:aws:iam::111122223333:role/audit|arn:aws:iam::111122223333:role/none',
  };
  const list = encodeAttributes(attributes);
  expect(list).toEqual(Object.values(attributes));
  expect(decodeAttributes((index) => list[index] ?? '')).toEqual(attributes);
  expect(attributesName('orders')).toBe('/mailroom/orders/attributes/v1');
});

describe('the neighbors of a Mailroom', () => {
  /** Parameter Store. A path without parameters refuses its reader. */
  function parameterStore(parameters: Readonly<Record<string, string>>) {
    const requestHandler = stubHandler(() => {
      const { Path } = requestHandler.requests.at(-1) as { readonly Path: string };
      const found = Object.entries(parameters).filter(([name]) => name.startsWith(`${Path}/`));
      return found.length === 0
        ? { status: 400, body: { __type: 'ThrottlingException', message: 'Rate exceeded' } }
        : { status: 200, body: { Parameters: found.map(([Name, Value]) => ({ Name, Value })) } };
    });
    return new SSMClient({ ...STUB_CONFIGURATION, requestHandler: requestHandler as never, maxAttempts: 1 });
  }
  const claim = encodeClaim(owner('Other'));
  const directory = (table: string, ...names: string[]) => ({
    [mailroomEntryName(table)]: JSON.stringify({ ...small.mailroom, table, bus: 'shop' }),
    ...Object.fromEntries(
      names.map((name) => [consumerEntryName(table, name), JSON.stringify({ ...worker, name })]),
    ),
  });

  test('are its consumers that are claimed on its bus; one that cannot be read ends no reading', async () => {
    const client = parameterStore({
      ...directory('payments', 'pay', 'left-the-bus'),
      [mailroomEntryName('broken')]: 'not JSON',
      ...Object.fromEntries(
        [
          ['payments', 'pay'],
          ['broken', 'one'],
          ['throttled', 'two'],
          ['orders', 'own'],
        ].map(([table = '', name = '']) => [consumerClaimName('shop', table, name), claim]),
      ),
    });
    const own = { ...small, mailroom: { ...small.mailroom, table: 'orders', bus: 'shop' } };
    const { neighbors, claims } = await readNeighbors(client, own);
    expect(
      neighbors.map(({ mailroom, consumers }) => [mailroom.table, consumers.map(({ name }) => name)]),
    ).toEqual([['payments', ['pay']]]);
    const { consumers, unlisted } = withNeighbors({ ...own, consumers: [] }, neighbors, claims);
    expect(consumers).toHaveLength(1);
    expect(unlisted?.map(({ name }) => name)).toEqual(['Other-prod/one', 'own', 'Other-prod/two']);
  });
});
