import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from '@nats-io/transport-node';
import { freePort } from '../../../localstack/free-port.ts';
import { type Broker, brokerOf } from './broker.ts';
import { logOf, ownDir } from './broker-files.ts';

/** What JetStream may store in files, and keep in memory. */
const FILE_MAX_BYTES = 64 * 1024 * 1024;
const MEMORY_MAX_BYTES = 16 * 1024 * 1024;

/** The largest message, below that of SQS. */
export const PAYLOAD_MAX_BYTES = 262_144;

/** How to reach a NATS. */
export interface NatsAddress {
  readonly servers: string;
  readonly user: string;
  readonly pass: string;
}

/** A started NATS with JetStream. */
export interface NatsBroker extends Broker {
  readonly address: NatsAddress;
}

/**
 * Starts a NATS with JetStream and one user, who is also everyone without credentials.
 *
 * @param program - the path of `nats-server`
 * @param name - names its folder and its log
 */
export async function startNats(program: string, name: string): Promise<NatsBroker> {
  const dir = await ownDir(name);
  const address = { servers: `127.0.0.1:${await freePort()}`, user: 'mailroom', pass: 'right' };
  const config = join(dir, 'nats.conf');
  await mkdir(join(dir, 'home'));
  await writeFile(config, configOf(address, join(dir, 'jetstream')));
  const broker = brokerOf({
    dir,
    command: {
      command: program,
      args: ['--config', config],
      cwd: dir,
      env: { HOME: join(dir, 'home') },
      log: logOf(name),
    },
    connect: async () => {
      const connection = await connect({ ...address, reconnect: false });
      await connection.close();
    },
  });
  await broker.start();
  return { ...broker, address };
}

function configOf({ servers, user, pass }: NatsAddress, store: string): string {
  return `
listen: "${servers}"
max_payload: ${PAYLOAD_MAX_BYTES}
jetstream { store_dir: "${store}", max_file_store: ${FILE_MAX_BYTES}, max_memory_store: ${MEMORY_MAX_BYTES} }
authorization { users: [{ user: "${user}", password: "${pass}" }] }
no_auth_user: "${user}"
`;
}
