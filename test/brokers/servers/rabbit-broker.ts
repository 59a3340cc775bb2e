import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { connect } from 'amqplib';
import { freePort } from '../../../localstack/free-port.ts';
import { type Broker, brokerOf } from './broker.ts';
import { logOf, ownDir } from './broker-files.ts';
import type { DebianPrograms } from './debian-packages.ts';
import { startProcess } from './server-process.ts';

const run = promisify(execFile);

/** RabbitMQ blocks publishers above this. It needs 150 MB. */
const MEMORY_MAX = '384MB';

/** RabbitMQ blocks publishers if less is free on the disk. */
const DISK_FREE = '50MB';

/** More than any disk has. */
const DISK_OF_NOBODY = '1000000GB';

/** A started RabbitMQ. */
export interface RabbitBroker extends Broker {
  /** With the user and the password. */
  readonly url: string;
  /** Makes it believe that its disk is full: it blocks every connection that publishes. */
  readonly fillDisk: () => Promise<void>;
  readonly freeDisk: () => Promise<void>;
}

/**
 * Starts a RabbitMQ, and the port mapper that Erlang needs.
 *
 * @param name - names its folder and its log
 * @param messageMaxBytes - the largest message: RabbitMQ's default
 */
export async function startRabbit(
  programs: DebianPrograms,
  name: string,
  messageMaxBytes = 134_217_728,
): Promise<RabbitBroker> {
  const { rabbitScripts, erlangBin, epmd } = programs;
  const dir = await ownDir(name);
  const [port, nodePort, mapperPort] = await Promise.all([freePort(), freePort(), freePort()]);
  const env = environmentOf({ dir, erlangBin, nodePort, mapperPort });
  await writeFile(join(dir, 'rabbitmq.conf'), configOf(port, messageMaxBytes));
  await writeFile(join(dir, '.erlang.cookie'), randomBytes(16).toString('hex'), { mode: 0o400 });

  const log = logOf(name);
  const mapper = startProcess({ command: epmd, args: [], cwd: dir, env, log });
  const url = `amqp://guest:guest@127.0.0.1:${port}`;
  const script = (file: string) => join(rabbitScripts, file);
  const broker = brokerOf({
    dir,
    command: { command: 'sh', args: [script('rabbitmq-server')], cwd: dir, env, log },
    connect: async () => {
      const connection = await connect(url);
      await connection.close();
    },
    closed: mapper.kill,
  });
  const control = async (...args: string[]) => {
    await run('sh', [script('rabbitmqctl'), '--quiet', ...args], { cwd: dir, env });
  };
  await broker.start().catch(async (error) => {
    await mapper.kill();
    throw error;
  });
  return {
    ...broker,
    url,
    fillDisk: async () => await control('set_disk_free_limit', DISK_OF_NOBODY),
    freeDisk: async () => await control('set_disk_free_limit', DISK_FREE),
  };
}

interface Place {
  readonly dir: string;
  readonly erlangBin: string;
  readonly nodePort: number;
  readonly mapperPort: number;
}

function environmentOf({ dir, erlangBin, nodePort, mapperPort }: Place): Record<string, string> {
  return {
    PATH: `${erlangBin}:/usr/bin:/bin`,
    LANG: 'C.UTF-8',
    // Of the cookie, with which rabbitmqctl proves itself.
    HOME: dir,
    ERL_EPMD_ADDRESS: '127.0.0.1',
    ERL_EPMD_PORT: String(mapperPort),
    RABBITMQ_NODENAME: 'rabbit@localhost',
    RABBITMQ_DIST_PORT: String(nodePort),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +A 4',
    RABBITMQ_CTL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
    // Otherwise it would read /etc/rabbitmq.
    RABBITMQ_CONF_ENV_FILE: '/dev/null',
    RABBITMQ_CONFIG_FILE: join(dir, 'rabbitmq.conf'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(dir, 'enabled_plugins'),
    RABBITMQ_MNESIA_BASE: join(dir, 'mnesia'),
    RABBITMQ_LOG_BASE: join(dir, 'log'),
    RABBITMQ_LOGS: '-',
    // The script becomes the server, and is not its parent.
    RUNNING_UNDER_SYSTEMD: 'true',
  };
}

function configOf(port: number, messageMaxBytes: number): string {
  return `
listeners.tcp.1 = 127.0.0.1:${port}
vm_memory_high_watermark.absolute = ${MEMORY_MAX}
disk_free_limit.absolute = ${DISK_FREE}
max_message_size = ${messageMaxBytes}
log.console.level = warning
`;
}
