import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Kafka, logLevel } from 'kafkajs';
import { freePort } from '../../../localstack/free-port.ts';
import { type Broker, brokerOf } from './broker.ts';
import { logOf, ownDir } from './broker-files.ts';

const run = promisify(execFile);

const HEAP = '256m';

/** The largest batch of a topic that sets no other limit: Kafka's default. */
const MESSAGE_MAX_BYTES = 1_048_588;

/** A started Kafka. */
export interface KafkaBroker extends Broker {
  /** Its address for clients without credentials. */
  readonly address: string;
  /** Its address for clients that must name their user. */
  readonly saslAddress: string;
  readonly user: { readonly username: string; readonly password: string };
}

/**
 * Starts a Kafka without ZooKeeper: one process is the broker and the controller.
 *
 * @param classPath - the jars of Kafka
 * @param name - names its folder and its log
 */
export async function startKafka(classPath: string, name: string): Promise<KafkaBroker> {
  const dir = await ownDir(name);
  const [port, saslPort, controllerPort] = await Promise.all([freePort(), freePort(), freePort()]);
  const user = { username: 'mailroom', password: 'right' };
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: dir };
  const settings = join(dir, 'server.properties');
  const logging = join(dir, 'log4j.properties');
  await mkdir(join(dir, 'data'));
  await writeFile(settings, settingsOf({ port, saslPort, controllerPort, user, data: join(dir, 'data') }));
  await writeFile(logging, LOGGING);

  const java = [`-Xmx${HEAP}`, `-Dlog4j.configuration=file:${logging}`, '-cp', classPath];
  const id = randomBytes(16).toString('base64url');
  const format = ['kafka.tools.StorageTool', 'format', `--cluster-id=${id}`, `--config=${settings}`];
  await run('java', [...java, ...format], { cwd: dir, env });

  const address = `127.0.0.1:${port}`;
  const client = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING, retry: { retries: 0 } });
  const broker = brokerOf({
    dir,
    command: { command: 'java', args: [...java, 'kafka.Kafka', settings], cwd: dir, env, log: logOf(name) },
    connect: async () => {
      const admin = client.admin();
      await admin.connect();
      const { brokers } = await admin.describeCluster().finally(() => admin.disconnect());
      // After kill -9 it first waits until its former session has ended.
      if (brokers.length === 0) throw new Error('The broker is not registered yet.');
    },
  });
  await broker.start();
  return { ...broker, address, saslAddress: `127.0.0.1:${saslPort}`, user };
}

interface Settings {
  readonly port: number;
  readonly saslPort: number;
  readonly controllerPort: number;
  readonly user: KafkaBroker['user'];
  readonly data: string;
}

function settingsOf({ port, saslPort, controllerPort, user, data }: Settings): string {
  const login = 'org.apache.kafka.common.security.plain.PlainLoginModule required';
  return `
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${controllerPort}
listeners=OPEN://127.0.0.1:${port},SASL://127.0.0.1:${saslPort},CONTROLLER://127.0.0.1:${controllerPort}
advertised.listeners=OPEN://127.0.0.1:${port},SASL://127.0.0.1:${saslPort}
listener.security.protocol.map=OPEN:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=OPEN
controller.listener.names=CONTROLLER
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config=${login} user_${user.username}="${user.password}";
log.dirs=${data}
auto.create.topics.enable=false
message.max.bytes=${MESSAGE_MAX_BYTES}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=6000
log.initial.task.delay.ms=500
log.retention.check.interval.ms=500
log.cleaner.dedupe.buffer.size=2097152
num.network.threads=1
num.io.threads=2
background.threads=2
`;
}

const LOGGING = `
log4j.rootLogger=WARN, out
log4j.logger.kafka.server.KafkaRaftServer=INFO
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n
`;
