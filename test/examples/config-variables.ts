import { readFileSync } from 'node:fs';
import {
  atOnceSettings,
  auditSettings,
  heartbeatSettings,
  producerSettings,
  relaySettings,
} from '../../lambdas/runtime/base/config.ts';
import type { Environment, EnvironmentSettings } from '../../lambdas/runtime/base/config-codec.ts';
import { consumerSettings } from '../../lambdas/runtime/base/consumer-config.ts';
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

/** The settings of each configuration. */
const SETTINGS: Readonly<Record<string, EnvironmentSettings<object>>> = {
  ProducerConfig: producerSettings,
  AtOnceConfig: atOnceSettings,
  ConsumerConfig: consumerSettings,
  RelayConfig: relaySettings,
  AuditConfig: auditSettings,
  HeartbeatConfig: heartbeatSettings,
};

/** The files that declare them. */
const SOURCE = ['config.ts', 'consumer-config.ts']
  .map((file) => readFileSync(new URL(`../../lambdas/runtime/base/${file}`, import.meta.url), 'utf8'))
  .join('');

/**
 * The variables of a configuration, in the order of its members.
 *
 * @param config - the name of its type, such as `RelayConfig`
 */
export function configVariables(config: string): ConfigVariable[] {
  const settings = SETTINGS[config];
  if (settings === undefined) throw new Error(`${config} has no settings`);
  const { encode, read } = settings;
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

/** Members of a configuration with their documentation, those of the interfaces that it extends first. */
function membersOf(config: string): Map<string, string> {
  const [, bases = '', body = ''] = declarationOf(config);
  const members = new Map(bases.split(', ').flatMap((base) => (base === '' ? [] : [...membersOf(base)])));
  for (const [, comment = '', member = ''] of body.matchAll(MEMBER))
    members.set(member, meaningOf(comment) || (MEANINGS.get(member) ?? ''));
  return members;
}

/** A member of an interface, or of the settings from which a type is inferred. */
const MEMBER = /(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*)?(?:readonly (?=\w+\??:)|(?=\w+: \w+\())(\w+)\??:/g;

/** The interface of a configuration; without one, its settings. */
function declarationOf(config: string): readonly (string | undefined)[] {
  const name = `${config[0]?.toLowerCase()}${config.slice(1).replace('Config', 'Settings')}`;
  const declared = new RegExp(`interface ${config}(?: extends ([\\w, ]+))? \\{(?:\n([\\s\\S]*?)\n)?\\}`);
  const inferred = new RegExp(`const ${name} = settings(?:<(\\w+) [^>]*>)?\\(\\{\n([\\s\\S]*?)\n\\}`);
  const found = declared.exec(SOURCE) ?? inferred.exec(SOURCE);
  if (found === null) throw new Error(`The declaration of ${config} was not found`);
  return found;
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
function validEnvironment(names: readonly string[], read: Read): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of names) {
    const accepted = ['1', '1000', '60000', 'true', '[]', 'latest'].find((value) => {
      const found = complaintVariable(read, { ...env, [name]: value });
      return found !== name;
    });
    if (accepted === undefined) throw new Error(`No value for ${name} is known here`);
    env[name] = accepted;
  }
  return env;
}

type Read = (env: Environment) => unknown;

const COMPLAINT = /^Environment variable (\w+) .*?; expected (.*?)\. Mailroom's constructs set it;/s;

function complaint(read: Read, env: Record<string, string>): string | undefined {
  try {
    read(env);
    return undefined;
  } catch (error) {
    return COMPLAINT.exec(errorMessage(error))?.[2];
  }
}

function complaintVariable(read: Read, env: Record<string, string>): string | undefined {
  try {
    read(env);
    return undefined;
  } catch (error) {
    return COMPLAINT.exec(errorMessage(error))?.[1];
  }
}
