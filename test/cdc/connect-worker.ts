import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../localstack/free-port.ts';
import { poll } from '../../localstack/health.ts';
import { type Broker, brokerOf } from '../brokers/servers/broker.ts';
import { logOf, ownDir } from '../brokers/servers/broker-files.ts';

const HEAP = '384m';

const DEADLINE_MS = 300_000;

/** The configuration of a connector, as `cdc config` prints it. */
export interface Connector {
  readonly name: string;
  readonly config: Readonly<Record<string, string>>;
}

/** A worker of Kafka Connect, which keeps its offsets in Kafka. */
export interface ConnectWorker extends Broker {
  /** Creates or changes a connector, and waits until its task runs. */
  readonly create: (connector: Connector) => Promise<void>;
  /** Restarts a connector and its task, and waits until it runs. */
  readonly restart: (name: string) => Promise<void>;
  /** Stops the task of a connector. It keeps its position. */
  readonly pause: (name: string) => Promise<void>;
  readonly resume: (name: string) => Promise<void>;
  /** Deletes the position of a connector that is stopped: it takes a snapshot when it is resumed. */
  readonly forget: (name: string) => Promise<void>;
  /** The state of its task, with the trace of one that failed. */
  readonly state: (name: string) => Promise<{ readonly state: string; readonly trace?: string | undefined }>;
  /** Waits until its task runs. */
  readonly running: (name: string) => Promise<void>;
}

/** Starts a worker. */
export async function startConnect(classPath: string, kafka: string): Promise<ConnectWorker> {
  const dir = await ownDir('connect');
  const port = await freePort();
  const settings = join(dir, 'worker.properties');
  await writeFile(settings, settingsOf(kafka, port));
  const api = `http://127.0.0.1:${port}`;
  const call = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(`${api}${path}`, {
      method,
      headers: { 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok && response.status !== 409)
      throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === '' ? {} : JSON.parse(text);
  };
  const worker = brokerOf({
    dir,
    command: {
      command: 'java',
      args: [`-Xmx${HEAP}`, '-cp', classPath, 'org.apache.kafka.connect.cli.ConnectDistributed', settings],
      cwd: dir,
      env: {
        PATH: '/usr/local/bin:/usr/bin:/bin',
        HOME: dir,
        PGPASSWORD: 'unused',
        MYSQL_PWD: 'unused',
        KAFKA_BOOTSTRAP_SERVERS: kafka,
      },
      log: logOf('connect'),
    },
    connect: async () => {
      await call('GET', '/connectors');
    },
  });
  await worker.start();
  const state: ConnectWorker['state'] = async (name) => {
    const { tasks = [], connector } = await call('GET', `/connectors/${name}/status`).catch(() => ({}));
    return tasks[0] ?? { state: connector?.state ?? 'ABSENT' };
  };
  const running = async (name: string) => {
    let last = await state(name);
    const ran = await poll(DEADLINE_MS, async () => {
      last = await state(name);
      return last.state === 'RUNNING' || undefined;
    });
    if (!ran) throw new Error(`The connector is ${last.state}: ${last.trace?.slice(0, 2_000)}`);
  };
  return {
    ...worker,
    state,
    running,
    create: async ({ name, config }) => {
      await call('PUT', `/connectors/${name}/config`, config);
      await running(name);
    },
    restart: async (name) => {
      await call('POST', `/connectors/${name}/restart?includeTasks=true`);
      await running(name);
    },
    pause: (name) => call('PUT', `/connectors/${name}/stop`),
    resume: (name) => call('PUT', `/connectors/${name}/resume`),
    forget: (name) => call('DELETE', `/connectors/${name}/offsets`),
  };
}

function settingsOf(kafka: string, port: number): string {
  return `
bootstrap.servers=${kafka}
group.id=connect
listeners=http://127.0.0.1:${port}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
offset.storage.partitions=1
status.storage.partitions=1
offset.flush.interval.ms=2000
config.providers=env
config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
scheduled.rebalance.max.delay.ms=1000
session.timeout.ms=10000
heartbeat.interval.ms=2000
plugin.discovery=only_scan
`;
}
