import { MailroomError } from '../base/errors.ts';
import { type DirectoryParameter, directoryPath, type EntryStack } from './directory.ts';

/**
 * The directory of a bus: the owners of its services and the consumers of every Mailroom on it. Each is a parameter under
 * `/mailroom-buses/<bus>`, and its name is the claim: CloudFormation refuses a second stack that creates it.
 */
export interface BusDirectory {
  readonly bus: string;
  /** Sorted by service. */
  readonly services: readonly ServiceClaim[];
  /** Sorted by table and name. */
  readonly consumers: readonly ConsumerClaim[];
}

/** The owner of a claim. */
export interface BusClaim extends EntryStack {
  /** The construct path of the Mailroom or the consumer that owns it; without the CDK, a name for it. */
  readonly owner: string;
}

/**
 * The Mailroom that publishes a service. Its table is not stored: the claim is deployed before the table, so that a refused one leaves
 * nothing behind. It is the table of the Mailroom entry with this stack, this bus and this source.
 */
interface ServiceClaim extends BusClaim {
  readonly service: string;
}

/** A consumer on the bus: its entry is `/mailroom/<table>/consumers/<name>`. */
interface ConsumerClaim extends BusClaim {
  readonly table: string;
  readonly name: string;
}

/** The prefix of the directories of all buses. */
export const BUSES_ROOT = '/mailroom-buses';

/** The prefix of the parameter names of one bus. */
export function busPath(bus: string): string {
  return `${BUSES_ROOT}/${bus}`;
}

/** The name of the parameter that a bus writes on which other apps may publish: Mailrooms of other apps look it up at their deployment. */
export function sharedBusName(bus: string): string {
  return `${busPath(bus)}/shared`;
}

/** The name of the parameter in which the owner of a shared bus lists the roles of audits that may read the Mailrooms there. */
export function busAuditorsName(bus: string): string {
  return `${busPath(bus)}/auditors`;
}

/** The name of the parameter by which a Mailroom claims a service on a bus. */
export function serviceClaimName(bus: string, service: string): string {
  return `${busPath(bus)}/services/${service}`;
}

/** The name of the parameter by which a consumer claims its name in a Mailroom. */
export function consumerClaimName(bus: string, table: string, consumer: string): string {
  return `${busPath(bus)}/consumers/${table}/${consumer}`;
}

/** Encodes the value of a claim. It holds no references, so that nothing is deployed before it. */
export function encodeClaim({ stack, stackPath, owner }: BusClaim): string {
  return JSON.stringify({ stack, stackPath, owner });
}

/**
 * Reads the directories of buses from parameters under {@link BUSES_ROOT}.
 *
 * @returns one per bus, sorted by name
 * @throws `BAD_DIRECTORY`, naming the parameter, if a value does not have the form that the constructs write
 */
export function readBusDirectories(parameters: readonly DirectoryParameter[]): BusDirectory[] {
  const buses = new Map<string, { services: ServiceClaim[]; consumers: ConsumerClaim[] }>();
  for (const parameter of parameters.toSorted((a, b) => a.name.localeCompare(b.name))) {
    const [, root, bus = '', kind, ...rest] = parameter.name.split('/');
    if (`/${root}` !== BUSES_ROOT || rest.length === 0) continue;
    const found = buses.get(bus) ?? { services: [], consumers: [] };
    buses.set(bus, found);
    // A service's name can contain slashes.
    if (kind === 'services') found.services.push({ ...decodeClaim(parameter), service: rest.join('/') });
    const [table = '', name = ''] = rest;
    if (kind === 'consumers') found.consumers.push({ ...decodeClaim(parameter), table, name });
  }
  return Array.from(buses, ([bus, claims]) => ({ bus, ...claims }));
}

function decodeClaim({ name, value }: DirectoryParameter): BusClaim {
  try {
    const { stack, stackPath, owner } = JSON.parse(value) as Partial<Record<string, unknown>>;
    const isPath = stackPath === undefined || typeof stackPath === 'string';
    if (typeof stack === 'string' && isPath && typeof owner === 'string') return { stack, stackPath, owner };
  } catch {
    // not JSON
  }
  throw new MailroomError(
    'BAD_DIRECTORY',
    `The parameter ${name} does not have the form that Mailroom writes. It was changed by hand: deploy its stack again with \`npx cdk deploy --revert-drift\`.`,
  );
}

/** The settings that consumers and producers of other apps need of a Mailroom, resolved when their stacks are deployed. */
export interface MailroomAttributes {
  /** The name of its bus. */
  readonly bus: string;
  readonly shards: string;
  readonly bornLeaseMs: string;
  /** The role of its sweep, which watches dead-letter queues. */
  readonly sweepRole: string;
  /** The ARN of its key; that of its table if AWS-owned keys encrypt it, because a policy needs an ARN. Key permissions on a table allow nothing. */
  readonly key: string;
  /** The roles of the audits that may read its consumers' queues, one or more, separated by {@link AUDITORS_SEPARATOR}. */
  readonly auditors: string;
}

/** No part of an ARN, and none of the list's commas. */
export const AUDITORS_SEPARATOR = '|';

/** The order of the attributes in the parameter's list. New ones are added at the end; another change is another version. */
const ATTRIBUTES = [
  'bus',
  'shards',
  'bornLeaseMs',
  'sweepRole',
  'key',
  'auditors',
] as const satisfies readonly (keyof MailroomAttributes)[];

/** The version is part of the name, so that the deployment of a stack that needs another one fails before it changes anything. */
const ATTRIBUTES_VERSION = 1;

/** The name of the StringList parameter that holds a Mailroom's attributes. */
export function attributesName(table: string): string {
  return `${directoryPath(table)}/attributes/v${ATTRIBUTES_VERSION}`;
}

/** Encodes the attributes of a Mailroom. */
export function encodeAttributes(attributes: MailroomAttributes): string[] {
  return ATTRIBUTES.map((name) => attributes[name]);
}

/** Decodes attributes. @param at - returns the value at an index of the list; at synth, a reference to it */
export function decodeAttributes(at: (index: number) => string): MailroomAttributes {
  const [bus, shards, bornLeaseMs, sweepRole, key, auditors] = ATTRIBUTES.map((_name, index) => at(index));
  return { bus, shards, bornLeaseMs, sweepRole, key, auditors } as MailroomAttributes;
}
