import { jsonObject } from '../base/json.ts';
import { type DirectoryParameter, directoryPath, type EntryStack } from './directory.ts';
import { badEntry } from './directory-entries.ts';

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
  /** The claims whose value cannot be read. The name of a parameter is the claim, so each is also in its list. @default none */
  readonly faults?: readonly ClaimFault[] | undefined;
}

/** A claim whose value cannot be read. */
interface ClaimFault {
  /** The name of the parameter. */
  readonly parameter: string;
  /** Why it cannot be read, as a sentence with the remedy. */
  readonly fault: string;
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
 * Reads the directories of buses from parameters under {@link BUSES_ROOT}. A claim whose value cannot be read still claims its name: its
 * owner is unknown, so the parameter's name stands for it.
 *
 * @returns one per bus, sorted by name
 */
export function readBusDirectories(parameters: readonly DirectoryParameter[]): BusDirectory[] {
  const buses = new Map<
    string,
    { services: ServiceClaim[]; consumers: ConsumerClaim[]; faults: ClaimFault[] }
  >();
  for (const parameter of parameters.toSorted((a, b) => a.name.localeCompare(b.name))) {
    const [, root, bus = '', kind, ...rest] = parameter.name.split('/');
    if (`/${root}` !== BUSES_ROOT || rest.length === 0) continue;
    const found = buses.get(bus) ?? { services: [], consumers: [], faults: [] };
    buses.set(bus, found);
    if (kind !== 'services' && kind !== 'consumers') continue;
    const claim = decodeClaim(parameter);
    const [table = '', name = '', ...others] = rest;
    const isNamed = kind === 'services' || (table !== '' && name !== '' && others.length === 0);
    if (claim === undefined || !isNamed) {
      const problem = isNamed
        ? 'it is not an object with stack and owner'
        : 'its name does not end with a table and a consumer';
      found.faults.push({ parameter: parameter.name, fault: badEntry(parameter.name, problem).message });
    }
    if (!isNamed) continue;
    const owner = claim ?? { stack: kind === 'services' ? parameter.name : table, owner: parameter.name };
    // A service's name can contain slashes.
    if (kind === 'services') found.services.push({ ...owner, service: rest.join('/') });
    else found.consumers.push({ ...owner, table, name });
  }
  return Array.from(buses, ([bus, { faults, ...claims }]) => ({
    bus,
    ...claims,
    ...(faults.length > 0 && { faults }),
  }));
}

function decodeClaim({ value }: DirectoryParameter): BusClaim | undefined {
  const { stack, stackPath, owner } = jsonObject(value) ?? {};
  const isPath = stackPath === undefined || typeof stackPath === 'string';
  return typeof stack === 'string' && isPath && typeof owner === 'string'
    ? { stack, stackPath, owner }
    : undefined;
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
