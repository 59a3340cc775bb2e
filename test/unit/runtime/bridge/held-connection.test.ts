import { once } from 'node:events';
import { type AddressInfo, connect as connectSocket, createServer, type Socket } from 'node:net';
import { connect } from 'amqplib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { heldConnection } from '../../../../lambdas/runtime/bridge/held-connection.ts';
import { rabbitTarget } from '../../../../lambdas/runtime/bridge/rabbit-target.ts';
import { manualClock } from '../../../../testing/index.ts';

/** A broker that hangs: it accepts connections and never answers. */
const sockets = new Set<Socket>();
const server = createServer((socket) => {
  sockets.add(socket);
  socket.on('error', () => {}).on('close', () => sockets.delete(socket));
});
let port = 0;

beforeEach(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  server.close();
  await once(server, 'close');
});

const accepted = async (count: number) => {
  while (sockets.size !== count) await new Promise(setImmediate);
};

describe('a broker that hangs', () => {
  test('has one connection, however many calls run out of time', async () => {
    const target = rabbitTarget({ connect, exchange: 'orders', url: `amqp://127.0.0.1:${port}` });
    const event = { eventId: 'e', type: 'T', occurredAt: 0, aggregateId: 'a' } as never;
    for (let call = 0; call < 20; call += 1) {
      void target.send([{ event, body: '{}', headers: {}, bridge: 'b' }]);
      target.reset?.(); // as when it did not answer in time
    }
    await accepted(1);
  });

  test('gets another one a minute later, and the first one is closed once it opens', async () => {
    const clock = manualClock();
    const closed: Socket[] = [];
    const opened: ((socket: Socket) => void)[] = [];
    const open = () =>
      new Promise<Socket>((resolve) => {
        opened.push(resolve);
      });
    const held = heldConnection(open, (socket) => closed.push(socket), clock);
    const first = held.get();
    await clock.advance(59_999);
    held.drop();
    expect(held.get()).toBe(first);
    await clock.advance(1);
    held.drop();
    const second = held.get();
    expect(second).not.toBe(first);
    const late = connectSocket(port, '127.0.0.1');
    opened[0]?.(late);
    await first;
    expect(closed).toEqual([late]);
    late.destroy();
  });
});
