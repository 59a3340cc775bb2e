import { readFileSync } from 'node:fs';
import {
  encodeAtOnceConfig,
  encodeAuditConfig,
  encodeConsumerConfig,
  encodeHeartbeatConfig,
  encodeProducerConfig,
  encodeRelayConfig,
  readAtOnceConfig,
  readAuditConfig,
  readConsumerConfig,
  readHeartbeatConfig,
  readProducerConfig,
  readRelayConfig,
} from '../../lambdas/runtime/base/config.ts';
import { errorMessage } from '../../lambdas/runtime/base/errors.ts';

/** An environment variable, as the codec that reads it knows it. */
export interface ConfigVariable {
  readonly name: string;
  /** The first sentences of the setting's documentation. */
  readonly meaning: string;
  /** The values that the codec accepts. */
  readonly allowed: string;
  readonly optional: boolean;
}

type Codec = readonly [
  encode: (config: never) => Record<string, string>,
  read: (env: Record<string, string>) => unknown,
];

/** The codec of each configuration. */
const CODECS: Readonly<Record<string, Codec>> = {
  ProducerConfig: [encodeProducerConfig, readProducerConfig],
  AtOnceConfig: [encodeAtOnceConfig, readAtOnceConfig],
  ConsumerConfig: [encodeConsumerConfig, readConsumerConfig],
  RelayConfig: [encodeRelayConfig, readRelayConfig],
  AuditConfig: [encodeAuditConfig, readAuditConfig],
  HeartbeatConfig: [encodeHeartbeatConfig, readHeartbeatConfig],
};

const SOURCE = readFileSync(new URL('../../lambdas/runtime/base/config.ts', import.meta.url), 'utf8');

/**
 * The variables of a configuration, in the order of its members.
 *
 * @param config - the name of the interface, such as `RelayConfig`
 */
export function configVariables(config: string): ConfigVariable[] {
  const [encode, read] = CODECS[config] ?? [];
  if (encode === undefined || read === undefined) throw new Error(`${config} has no codec`);
  const members = membersOf(config);
  const named = [...members].map(([member, meaning]) => {
    const [name = ''] = Object.keys(encode({ [member]: [] } as never));
    return { name, meaning };
  });
  const valid = validEnvironment(
    named.map(({ name }) => name),
    read,
  );
  return named.map(({ name, meaning }) => {
    const { [name]: _, ...without } = valid;
    const allowed = complaint(read, { ...valid, [name]: '' }) ?? '';
    return { name, meaning, allowed, optional: complaint(read, without) === undefined };
  });
}

/** Members of an interface with their documentation, those of the interface that it extends first. */
function membersOf(config: string): Map<string, string> {
  const [, base, body = ''] =
    new RegExp(`interface ${config}(?: extends (\\w+))? \\{\n([\\s\\S]*?)\n\\}`).exec(SOURCE) ?? [];
  const members = base === undefined ? new Map<string, string>() : membersOf(base);
  for (const [, comment = '', member = ''] of body.matchAll(
    /(?:\/\*\*([\s\S]*?)\*\/\s*)?readonly (\w+)\??:/g,
  ))
    members.set(member, meaningOf(comment) || (MEANINGS.get(member) ?? ''));
  return members;
}

/** The documentation of each member that has one, for members of other interfaces that repeat it without. */
const MEANINGS = new Map(
  [...SOURCE.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*readonly (\w+)\??:/g)].map(
    ([, comment = '', member = '']) => [member, meaningOf(comment)] as const,
  ),
);

function meaningOf(comment: string): string {
  const text = comment.replaceAll(/\n\s*\*/g, '\n').replace(/@default[\s\S]*/, '');
  return text.replaceAll(/\s+/g, ' ').trim();
}

/** Finds a value for each variable that the codec accepts, by its own complaints. */
function validEnvironment(names: readonly string[], read: Codec[1]): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of names) {
    const accepted = ['1', '1000', '60000', 'true', '[]'].find((value) => {
      const found = complaintVariable(read, { ...env, [name]: value });
      return found !== name;
    });
    if (accepted === undefined) throw new Error(`No value for ${name} is known here`);
    env[name] = accepted;
  }
  return env;
}

const COMPLAINT = /^Environment variable (\w+) .*?; expected (.*?)\. Mailroom's constructs set it;/s;

function complaint(read: Codec[1], env: Record<string, string>): string | undefined {
  try {
    read(env);
    return undefined;
  } catch (error) {
    return COMPLAINT.exec(errorMessage(error))?.[2];
  }
}

function complaintVariable(read: Codec[1], env: Record<string, string>): string | undefined {
  try {
    read(env);
    return undefined;
  } catch (error) {
    return COMPLAINT.exec(errorMessage(error))?.[1];
  }
}
