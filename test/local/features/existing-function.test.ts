import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { checkBodies } from '../../../cli/deployment/invoke.ts';
import { eventually } from '../support/eventually.ts';
import { deployed, invoke, lambda } from '../support/features.ts';
import { mailroom } from '../support/mailroom.ts';

async function reservations() {
  const { consumers } = await deployed();
  return consumers.find(({ name }) => name === 'reservations') ?? expect.fail('There is no such consumer');
}

test('an existing function behind an alias publishes an order, and processes it from its queue', async () => {
  const { function: name, alias } = await reservations();
  expect(alias).toBe('live');
  const eventId = String(await invoke(name, { orderId: randomUUID() }, alias));
  await eventually(async () => {
    const why = await mailroom('why', eventId, '--json');
    expect(why.json().events).toMatchObject([{ consumers: { reservations: 'PROCESSED' } }]);
  });
});

test('the mapping, the settings and the messages of an existing function are checked through its alias', async () => {
  const { problems = [] } = (await mailroom('doctor', '--json')).json();
  expect(problems.filter(({ part }: { part: string }) => part === 'reservations')).toEqual([]);
  const { json } = await mailroom('describe', 'reservations', '--json');
  expect(json()).toMatchObject({ alias: 'live', deployed: { mappings: [{ state: 'Enabled' }] } });
  expect(await checkBodies(lambda, await reservations(), ['not an event'])).toHaveLength(1);
});
