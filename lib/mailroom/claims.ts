import { Stack } from 'aws-cdk-lib';
import { StringParameter } from 'aws-cdk-lib/aws-ssm';
import type { Construct, IConstruct } from 'constructs';
import {
  consumerClaimName,
  encodeClaim,
  serviceClaimName,
} from '../../lambdas/runtime/operations/bus-directory.ts';
import { servicePath } from '../../lambdas/runtime/operations/directory.ts';
import { refuse } from '../checks/refusal.ts';

/** The bus and the table of a claim. */
interface ClaimPlace {
  /** The names of the bus and the table. */
  readonly bus: string;
  readonly table: string;
}

/** The owners of the services on each bus of this app, which a deployment would refuse anyway, after minutes. */
const OWNERS = new WeakMap<IConstruct, Map<string, IConstruct>>();

/**
 * Refuses a service that another Mailroom of this app publishes on the same bus.
 *
 * @throws `BAD_SETTINGS`, naming the owner
 */
export function refuseClaimed(mailroom: IConstruct, bus: IConstruct, service: string): void {
  const owners = OWNERS.get(bus) ?? new Map<string, IConstruct>();
  const owner = owners.get(service) ?? mailroom;
  refuse(
    `The Mailroom ${mailroom.node.path}`,
    owner === mailroom
      ? []
      : [
          `It publishes the service "${service}", but ${owner.node.path} already publishes it on the same bus, and an event must come from one table. ` +
            'Publish it through that Mailroom, or choose another name.',
        ],
  );
  OWNERS.set(bus, owners.set(service, mailroom));
}

/**
 * Claims a service on a bus: a second stack that creates the same parameter fails. Its value refers to nothing, and the table is deployed after
 * it, so that a refused deployment has changed nothing.
 *
 * A second parameter, under the table, shows producers of other apps that the relay publishes the service.
 *
 * @returns the claim
 */
export function claimService(
  mailroom: Construct,
  { bus, table }: ClaimPlace,
  service: string,
): StringParameter {
  const claim = new StringParameter(mailroom, `Claim-${service}`, {
    parameterName: serviceClaimName(bus, service),
    description: claimText(`The service ${service} on this bus`, mailroom),
    stringValue: claimValue(mailroom),
    simpleName: false,
  });
  new StringParameter(mailroom, `Service-${service}`, {
    parameterName: servicePath(table, service),
    description:
      'The relay publishes this service. Producers of other apps look it up when they are deployed.',
    stringValue: claimValue(mailroom),
    simpleName: false,
  });
  return claim;
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
