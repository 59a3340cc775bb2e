import { required } from '../../demo/readings.ts';
import { startDemoDatabase } from '../../demo/start-database.ts';
import type { DatabaseEngine } from '../../lambdas/runtime/base/database-engine.ts';
import { mysqlRelaySettings } from '../../lambdas/runtime/mysql/mysql-settings.ts';
import type { Outputs } from '../../localstack/cdk-process.ts';
import { localEnvironment, localFile, projectRoot } from '../../localstack/workspace.ts';
import { type ServerProcess, startProcess } from '../brokers/servers/server-process.ts';
import type { Cleanup } from './cleanup.ts';
import { preload } from './deployed-functions.ts';
import { SLOW_SERVER, slowCommits } from './slow-commits.ts';
import { RELAY_TIMINGS } from './timings.ts';

/** The database of the orders and its relay, each of which is started again whenever it is killed. */
export interface ChaosDatabase {
  /** Its orders, events and inbox rows, as items of a table; waits while the server is down. */
  items(): Promise<Record<string, unknown>[]>;
  /** Kills every process of the server, with its open transactions. @returns when they have ended */
  killServer(): Promise<void>;
  /** Kills the relay. @returns when it has ended */
  killRelay(): Promise<void>;
  /** The relay's process now. */
  relay(): Pick<ServerProcess, 'pid' | 'hasEnded'>;
}

/** A started database whose order system is not deployed yet. */
interface StartedDatabase {
  readonly context: Readonly<Record<string, string>>;
  /** @param to.proxyUrl - the relay's address for calls of AWS */
  startRelay(to: {
    readonly endpoint: string;
    readonly outputs: Outputs;
    readonly proxyUrl: string;
  }): ChaosDatabase;
}

/** Starts the database of the demo. */
export async function startChaosDatabase({
  engine,
  cleanup,
  onProgress,
}: {
  readonly engine: DatabaseEngine;
  readonly cleanup: Cleanup;
  readonly onProgress: (line: string) => void;
}): Promise<StartedDatabase> {
  const { server, context, items, close } = await startDemoDatabase(engine, onProgress, SLOW_SERVER[engine]);
  /** Settles when the server is up again. */
  let isUp: Promise<unknown> = Promise.resolve();
  cleanup.add(async () => {
    await isUp.catch(() => {}); // a restart that failed was reported
    await close();
  });
  if (engine === 'postgres')
    await slowCommits(server.url, { 'mailroom.event': 'INSERT', 'mailroom.inbox': 'INSERT OR UPDATE' });

  async function itemsWhenUp(): Promise<Record<string, unknown>[]> {
    for (;;) {
      const wasUp = isUp;
      await wasUp;
      try {
        return await items();
      } catch (error) {
        if (wasUp === isUp) throw error; // else the server was killed meanwhile
      }
    }
  }

  return {
    context,
    startRelay: ({ endpoint, outputs, proxyUrl }) => {
      const env = {
        ...localEnvironment(endpoint),
        ...mysqlRelaySettings.encode({
          ...RELAY_TIMINGS,
          tableName: 'mailroom',
          busName: required(outputs, 'EventBusName'),
          maxAttempts: 20,
          publishedRetentionDays: 7,
          sources: ['orders'],
          pollMs: 200,
        }),
        [`MAILROOM_${engine.toUpperCase()}`]: server.url,
        PATH: process.env.PATH ?? '',
        NODE_OPTIONS: preload(proxyUrl),
      };
      const start = () =>
        startProcess({
          command: process.execPath,
          args: ['--import', 'tsx', 'test/chaos/database-relay.child.ts'],
          cwd: projectRoot,
          env,
          log: localFile(`${engine}-relay-of-chaos.log`),
        });
      let relay = start();
      cleanup.add(() => relay.kill());
      return {
        items: itemsWhenUp,
        killServer: () => {
          const killed = isUp.then(server.kill);
          isUp = killed.then(server.recover);
          isUp.catch(() => {}); // the next one that needs the server gets the error
          return killed;
        },
        killRelay: async () => {
          await relay.kill();
          relay = start();
        },
        relay: () => relay,
      };
    },
  };
}
