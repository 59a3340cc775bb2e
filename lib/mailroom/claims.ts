import { Stack, Stage } from 'aws-cdk-lib';
import type { IEventBus } from 'aws-cdk-lib/aws-events';
import { StringParameter } from 'aws-cdk-lib/aws-ssm';
import type { Construct, IConstruct } from 'constructs';
import {
  consumerClaimName,
  encodeClaim,
  serviceClaimName,
} from '../../lambdas/runtime/operations/bus-directory.ts';
import { servicePath } from '../../lambdas/runtime/operations/directory.ts';
import { refuse } from '../checks/refusal.ts';
import { identityOf } from './bus-identity.ts';

/** The bus and the table of a claim. */
interface ClaimPlace {
  /** The names of the bus and the table. */
  readonly bus: string;
  readonly table: string;
}

/** The owners of the services on each bus, by the app or stage and the identity of the bus: a deployment would refuse a second one, after minutes. */
const OWNERS = new WeakMap<IConstruct, Map<string, IConstruct>>();

/**
 * Refuses a service that another Mailroom of this app publishes on the same bus.
 *
 * @throws `BAD_SETTINGS`, naming the owner
 */
export function refuseClaimed(mailroom: IConstruct, bus: IEventBus, service: string): void {
  const root = Stage.of(mailroom) ?? mailroom.node.root;
  const owners = OWNERS.get(root) ?? new Map<string, IConstruct>();
  const key = `${identityOf(bus)} ${service}`;
  const owner = owners.get(key) ?? mailroom;
  refuse(
    `The Mailroom ${mailroom.node.path}`,
    owner === mailroom
      ? []
      : [
          `It publishes the service "${service}", but ${owner.node.path} already publishes it on the same bus, and an event must come from one table. ` +
            'Publish it through that Mailroom, or choose another name.',
        ],
  );
  OWNERS.set(root, owners.set(key, mailroom));
}

/**
 * Claims a service on a bus: a second stack that creates the same parameter fails. Its value refers to nothing, and the table is deployed after
 * it, so that a refused deployment has changed nothing.
 *
 * @param bus - the name of the bus
 * @returns the claim
 */
export function claimService(mailroom: Construct, bus: string, service: string): StringParameter {
  return new StringParameter(mailroom, `Claim-${service}`, {
    parameterName: serviceClaimName(bus, service),
    description: claimText(`The service ${service} on this bus`, mailroom),
    stringValue: claimValue(mailroom),
    simpleName: false,
  });
}

/** Shows producers of other apps that the relay of a table publishes the service. */
export function listService(mailroom: Construct, table: string, service: string): void {
  new StringParameter(mailroom, `Service-${service}`, {
    parameterName: servicePath(table, service),
    description:
      'The relay publishes this service. Producers of other apps look it up when they are deployed.',
    stringValue: claimValue(mailroom),
    simpleName: false,
  });
}

/**
 * Claims a consumer's name in a Mailroom, and lists it on the bus.
 *
 * @returns the claim, which must be deployed before the rest of the consumer
 */
export function claimConsumer(
  consumer: Construct,
  { bus, table }: ClaimPlace,
  name: string,
): StringParameter {
  return new StringParameter(consumer, 'Claim', {
    parameterName: consumerClaimName(bus, table, name),
    description: claimText(`The consumer name ${name} in this Mailroom`, consumer),
    stringValue: claimValue(consumer),
    simpleName: false,
  });
}

/** CloudFormation names the parameter that exists already; its description names the owner. */
function claimText(what: string, owner: IConstruct): string {
  return `${what} belongs to ${owner.node.path} in the stack ${Stack.of(owner).stackName}. It has one owner.`;
}

function claimValue(owner: IConstruct): string {
  const { stackName: stack, node } = Stack.of(owner);
  return encodeClaim({ stack, stackPath: node.path, owner: owner.node.path });
}
