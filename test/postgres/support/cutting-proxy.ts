import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** Where the connection of the next COMMIT is cut: before it reaches the server, or after the server has answered it. */
type Cut = 'before' | 'after';

/** A proxy in front of a database that loses connections on request. */
export interface CuttingProxy {
  readonly port: number;
  /** Cuts the connection of the next COMMIT. */
  cutNextCommit(where: Cut): void;
  close(): Promise<void>;
}

export async function startCuttingProxy(serverPort: number): Promise<CuttingProxy> {
  let next: Cut | undefined;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(serverPort, '127.0.0.1');
    let cut: Cut | undefined;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', (data) => {
      if (next !== undefined && /commit(?:\0|$)/i.test(data.toString('latin1')))
        [cut, next] = [next, undefined];
      if (cut === 'before') client.destroy();
      else upstream.write(data);
    });
    upstream.on('data', (data) => {
      if (cut === 'after') client.destroy();
      else client.write(data);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    cutNextCommit: (where) => {
      next = where;
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
