import { type EventSourceMappingConfiguration, LambdaClient } from '@aws-sdk/client-lambda';
import { expect, test } from 'vitest';
import { sharedMappings } from '../../../cli/deployment/function-mappings.ts';
import { STUB_CONFIGURATION, stubHandler } from '../../support/stub-client.ts';

const mapping = (name: string): EventSourceMappingConfiguration => ({
  UUID: name,
  FunctionArn: `arn:aws:lambda:eu-west-1:111122223333:function:${name}`,
});

/** @param marker - of a next page */
function reading(listed: readonly string[], marker?: string) {
  const body = { EventSourceMappings: listed.map(mapping), NextMarker: marker };
  const requestHandler = stubHandler(() => ({ status: 200, body }));
  const client = new LambdaClient({ ...STUB_CONFIGURATION, requestHandler: requestHandler as never });
  const alone: string[] = [];
  const read = sharedMappings(client, async (name) => {
    alone.push(name);
    return [{ UUID: 'its own' }];
  });
  return { read, alone, requests: requestHandler.requests };
}

test('the mappings of several functions and aliases are read with one list', async () => {
  const { read, alone, requests } = reading(['stock', 'payments:live', 'payments', 'stock', 'other']);
  const found = await Promise.all(['stock', 'payments:live', 'payments'].map(read));
  expect(found.map((own) => own.map(({ UUID }) => UUID))).toEqual([
    ['stock', 'stock'],
    ['payments:live'],
    ['payments'],
  ]);
  expect([requests.length, alone]).toEqual([1, []]);
  await read('stock');
  expect(requests).toHaveLength(2);
});

test('a function that the list does not show is read alone', async () => {
  const { read, alone } = reading(['stock']);
  expect(await Promise.all(['stock', 'mailer'].map(read))).toEqual([
    [mapping('stock')],
    [{ UUID: 'its own' }],
  ]);
  expect(alone).toEqual(['mailer']);
});

test('a list of several pages is not used', async () => {
  const { read, alone } = reading(['stock'], 'more');
  expect(await read('stock')).toEqual([{ UUID: 'its own' }]);
  expect(alone).toEqual(['stock']);
});
