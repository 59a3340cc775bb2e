import { Client } from 'pg';
import { startDemoPostgres } from '../../demo/postgres.ts';
import { required } from '../../demo/readings.ts';
import { postgresRelaySettings } from '../../lambdas/runtime/postgres/postgres-settings.ts';
import type { Outputs } from '../../localstack/cdk-process.ts';
import { localEnvironment, localFile, projectRoot } from '../../localstack/workspace.ts';
import { type ServerProcess, startProcess } from '../brokers/servers/server-process.ts';
import type { Cleanup } from './cleanup.ts';
import { preload } from './deployed-functions.ts';
import { RELAY_TIMINGS } from './timings.ts';

/** The database of the orders and its relay, each of which is started again whenever it is killed. */
export interface ChaosPostgres {
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
interface StartedPostgres {
  readonly context: Readonly<Record<string, string>>;
  /** @param to.proxyUrl - the relay's address for calls of AWS */
  startRelay(to: {
    readonly endpoint: string;
    readonly outputs: Outputs;
    readonly proxyUrl: string;
  }): ChaosPostgres;
}

/**
 * Each COMMIT of events or of a message takes a tenth of a second longer, before it happens: a server that is killed under load then has
 * transactions open.
 */
const SLOW_COMMITS = `
CREATE FUNCTION slow_commit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.1); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON mailroom.event DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION slow_commit();
CREATE CONSTRAINT TRIGGER slow AFTER INSERT OR UPDATE ON mailroom.inbox DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION slow_commit();`;

/** Starts the PostgreSQL of the demo. */
export async function startChaosPostgres({
  cleanup,
  onProgress,
}: {
  readonly cleanup: Cleanup;
  readonly onProgress: (line: string) => void;
}): Promise<StartedPostgres> {
  const { server, context, items, close } = await startDemoPostgres({ step: onProgress });
  /** Settles when the server is up again. */
  let isUp: Promise<unknown> = Promise.resolve();
  cleanup.add(async () => {
    await isUp.catch(() => {}); // a restart that failed was reported
    await close();
  });
  const client = new Client(server.url);
  await client.connect();
  await client.query(SLOW_COMMITS);
  await client.end();

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
        ...postgresRelaySettings.encode({
          ...RELAY_TIMINGS,
          tableName: 'mailroom',
          busName: required(outputs, 'EventBusName'),
          maxAttempts: 20,
          publishedRetentionDays: 7,
          sources: ['orders'],
          pollMs: 200,
        }),
        MAILROOM_POSTGRES: server.url,
        PATH: process.env.PATH ?? '',
        NODE_OPTIONS: preload(proxyUrl),
      };
      const start = () =>
        startProcess({
          command: process.execPath,
          args: ['--import', 'tsx', 'test/chaos/postgres-relay.child.ts'],
          cwd: projectRoot,
          env,
          log: localFile('postgres-relay-of-chaos.log'),
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
