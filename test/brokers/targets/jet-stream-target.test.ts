import { DiscardPolicy, jetstream } from '@nats-io/jetstream';
import { connect, headers } from '@nats-io/transport-node';
import { expect, inject, test } from 'vitest';
import { jetStreamTarget } from '../../../lambdas/runtime/bridge.ts';
import { natsClient } from '../clients/nats-client.ts';
import { startJetStreamPlaces } from '../places/jet-stream-places.ts';
import { MESSAGE_MAX_BYTES } from '../places/places.ts';
import { report } from '../receipts.ts';
import { PAYLOAD_MAX_BYTES } from '../servers/nats-broker.ts';
import { bridgeTo, countedAt } from './bridge.ts';
import { targetOf } from './target-of.ts';
import { describeTarget } from './target-tests.ts';

const debian = inject('debian');

describeTarget(
  {
    broker: 'JetStream',
    isMissing: debian === undefined,
    start: () => startJetStreamPlaces(debian?.natsServer ?? '', 'nats-target'),
    timesAfterCrash: 1,
    errors: {
      missing: /BRIDGE_FAILED.*no stream/,
      denied: /BRIDGE_FAILED.*authorization/i,
      tooLarge: /BRIDGE_REJECTED.*(size|payload)/i,
    },
  },
  (broker) => {
    test('waits until a stream that is full has room', async (context) => {
      const { placeOf, address } = broker();
      const client = await natsClient(address);
      try {
        await client.createStream({ name: 'full', max_msgs: 4, discard: DiscardPolicy.New });
        const bridge = bridgeTo(targetOf(placeOf('full')));
        const sent = await bridge.publish(10);
        const failures = await bridge.deliver();
        expect(failures).toHaveLength(6);
        for (const failure of failures) expect(failure).toMatch(/BRIDGE_FAILED.*maximum messages exceeded/);
        await client.manager.streams.update('full', { max_msgs: 100 });
        await bridge.settle();
        const arrived = (await client.arrived('full')).map(countedAt);
        const receipt = await report(
          context,
          { broker: 'JetStream', scenario: 'stream full' },
          sent,
          arrived,
        );
        expect(receipt).toMatchObject({ received: 10, lost: 0 });
      } finally {
        await client.close();
      }
    });

    test.each([
      ['a space', 'Jane Doe'],
      [
        'a line break and a command',
        'x 12 12\r\nNATS/1.0\r\n\r\n\r\nPUB secret.all 2\r\nhi\r\nPUB hostile.y',
      ],
      ['a wildcard', '*'],
      ['an empty token', ''],
      ['5,000 characters', 'x'.repeat(5_000)],
    ])('rejects an event whose subject has %s, and delivers its neighbors at once', async (what, filling) => {
      const { address, create } = broker();
      const client = await natsClient(address);
      const stream = `hostile-${what.replace(/\W/g, '')}`;
      const connections: unknown[] = [];
      try {
        await Promise.all([
          create(stream),
          client.createStream({ name: `${stream}-secret`, subjects: ['secret.>'] }),
        ]);
        const to = jetStreamTarget({
          connect: async (servers) => {
            const connection = await connect({ ...address, servers });
            connections.push(connection);
            return connection;
          },
          jetstream,
          headers,
          subject: ({ data }) => `${stream}.${(data as { filling: string }).filling}`,
          servers: address.servers,
        });
        const bridge = bridgeTo(to);
        await bridge.publish(2, { filling: 'healthy' });
        await bridge.publish(1, { filling });
        await bridge.publish(2, { filling: 'Größe' });
        expect(await bridge.deliver()).toEqual([expect.stringMatching(/^BRIDGE_REJECTED.*its subject/)]);
        expect(
          bridge
            .rows()
            .map(({ status, attempts }) => `${status} ${attempts}`)
            .sort(),
        ).toEqual([...Array(4).fill('PROCESSED 1'), 'REJECTED 1']);
        expect(await client.arrived(stream)).toHaveLength(4);
        expect(await client.arrived(`${stream}-secret`)).toEqual([]);
        expect(connections).toHaveLength(1);
        to.reset?.();
        await client.manager.streams.delete(`${stream}-secret`);
      } finally {
        await client.close();
      }
    });

    test('tells refusals apart', async () => {
      const { address, create } = broker();
      await create('current');
      const sent = async (subject: string, filling = '', pass = address.pass) => {
        const connectAs = (servers: string[]) => connect({ servers, user: address.user, pass });
        const to = jetStreamTarget({
          connect: connectAs,
          jetstream,
          headers,
          subject,
          servers: address.servers,
        });
        const bridge = bridgeTo(to);
        await bridge.publish(1, { filling });
        const [error = 'none'] = await bridge.deliver();
        to.reset?.();
        return error;
      };
      expect(await sent('current.packed')).toBe('none');
      expect(await sent('nowhere')).toMatch(/BRIDGE_FAILED.*no stream stores/);
      expect(await sent('current.packed', '', 'wrong')).toMatch(/BRIDGE_FAILED.*Correct the credentials/);
      const large = 'x'.repeat(MESSAGE_MAX_BYTES);
      expect(await sent('current.packed', large)).toMatch(/BRIDGE_REJECTED.*message size/);
      const tooLarge = 'x'.repeat(PAYLOAD_MAX_BYTES);
      expect(await sent('current.packed', tooLarge)).toMatch(/BRIDGE_REJECTED.*max_payload/);
    });
  },
);
