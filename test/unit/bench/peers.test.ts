import { readFileSync } from 'node:fs';
import { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { expect, test, vi } from 'vitest';
import { SOURCE } from '../../../bench/alternatives/workload.ts';
import {
  type Carrier,
  measureCarrier,
  type PeerFigures,
  type PeerTask,
  REFUSED,
} from '../../../bench/peers/carried.ts';
import { PEER_PACKAGES, PEER_VERSION, peerSpecs, withPeer } from '../../../bench/peers/packages.ts';
import { peers } from '../../../bench/peers.ts';
import { runChild, startServer } from '../../../bench/processes.ts';
import { RELAY_CONFIG } from '../../../bench/relay/measured-relay.ts';

const TASK: PeerTask = { payloadBytes: 200, warmUp: 3, events: 20, roundMax: 10 };

const TABLES = { tables: [{ name: RELAY_CONFIG.tableName, keys: ['PK', 'SK'] }] };

/** Runs `use` beside the process with the tables and the bus. */
async function withTables<T>(use: (endpoint: string) => Promise<T>): Promise<T> {
  const server = await startServer('peers/tables', TABLES);
  try {
    return await use(server.endpoint);
  } finally {
    await server.stop();
  }
}

/** A publisher that takes every answer of the bus for a success, and that publishes only a part of the events. */
function carelessCarrier(endpoint: string, share = 1): Carrier {
  const client = new EventBridgeClient({
    endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });
  let waiting = 0;
  return {
    write: async () => {
      waiting += 1;
    },
    relay: async () => {
      for (let left = Math.ceil(waiting * share); left > 0; left -= 1) {
        const entry = { Source: SOURCE, DetailType: 'OrderPlaced', Detail: '{}' };
        await client.send(new PutEventsCommand({ Entries: [entry] }));
      }
      waiting = 0;
    },
  };
}

test('without --install, the part prints the command with exact versions, and measures nothing', async () => {
  const said: string[] = [];
  const result = await peers.run({ say: (line) => said.push(line), quick: true, install: false });
  expect(result).toEqual({ json: {}, tables: [] });
  const command = said.find((line) => line.includes('npm install')) ?? '';
  for (const spec of peerSpecs()) expect(command).toContain(` ${spec}`);
  expect(command).toContain('--ignore-scripts');
  expect(said.join('\n')).toContain('--install');
});

test('every package has an exact version, and the peer is not a dependency', () => {
  const specs = peerSpecs();
  expect(specs.filter((spec) => !/.@\d+\.\d+\.\d+$/.test(spec))).toEqual([]);
  expect(specs.slice(0, PEER_PACKAGES.length)).toEqual(
    PEER_PACKAGES.map((name) => `${name}@${PEER_VERSION}`),
  );
  const manifest = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  expect(manifest).not.toContain('outbox-event-bus');
});

test('a folder without a file for each package is refused by name', async () => {
  const folder = new URL('.', import.meta.url).pathname;
  await expect(withPeer(folder, async () => {})).rejects.toThrow(`The folder ${folder} has 0 .tgz files`);
});

test('Mailroom publishes every event once over HTTP, also those that the bus refused, for five write units', async () => {
  const figures = await withTables((endpoint) => runChild<PeerFigures>('peers/mailroom', endpoint, TASK));
  expect(figures).toMatchObject({ writeUnits: 5, readUnits: 0, busCalls: 0.1, duplicates: 0, lost: 0 });
  expect(figures.eventsPerSecond).toBeGreaterThan(0);
});

test('entries that the bus refused and never received again are lost', async () => {
  const figures = await withTables(async (endpoint) => {
    vi.stubEnv('AWS_ENDPOINT_URL', endpoint);
    return measureCarrier(carelessCarrier(endpoint), TASK);
  });
  expect(figures).toMatchObject({ writeUnits: 0, busCalls: 1, duplicates: 0, lost: REFUSED });
});

test('a carrier that does not publish all events has no figures', async () => {
  await withTables(async (endpoint) => {
    vi.stubEnv('AWS_ENDPOINT_URL', endpoint);
    await expect(measureCarrier(carelessCarrier(endpoint, 0.5), TASK)).rejects.toThrow(
      'Only 10 of 20 events were published',
    );
  });
});
