import { type IVpc, Peer, Port, SecurityGroup, type SubnetSelection } from 'aws-cdk-lib/aws-ec2';
import type { Construct } from 'constructs';
import { unless } from '../checks/refusal.ts';
import { acknowledge } from '../functions/acknowledged-warnings.ts';

/** The subnets of a function beside a database: with a way to the internet if there are such, never public. */
export function databaseSubnets(vpc: IVpc): SubnetSelection {
  return { subnets: vpc.privateSubnets.length > 0 ? vpc.privateSubnets : vpc.isolatedSubnets };
}

/** Validates the subnets of a function beside a database. @param property - the one that selects them */
export function subnetProblems(property: string, vpc: IVpc, selection: SubnetSelection): string[] {
  const { hasPublic, subnetIds } = vpc.selectSubnets(selection);
  return [
    ...unless(
      !hasPublic,
      `${property} contains a public subnet, in which a Lambda function has no route to AWS. Choose private subnets.`,
    ),
    ...unless(
      subnetIds.length > 0,
      `database.vpc has no private subnet for the function. Add one, or set ${property}.`,
    ),
  ];
}

/** True if only interface endpoints lead from a subnet to AWS. */
export function areIsolated(vpc: IVpc, selection: SubnetSelection): boolean {
  const chosen = new Set(vpc.selectSubnets(selection).subnetIds);
  return vpc.isolatedSubnets.some(({ subnetId }) => chosen.has(subnetId));
}

/** Creates a security group that admits no traffic, and lets out HTTPS; `connect` adds the way to the database. */
export function databaseClients(scope: Construct, vpc: IVpc, description: string): SecurityGroup {
  const group = new SecurityGroup(scope, 'Network', { vpc, description, allowAllOutbound: false });
  group.addEgressRule(Peer.anyIpv4(), Port.HTTPS, 'The services of AWS');
  explainRules(group);
  return group;
}

/** cdk-nag cannot judge a port or a range of addresses that is known at deployment only. */
export function explainRules(group: Construct): void {
  const reason = 'It is open to one security group on the port of the database, or to its VPC on port 443.';
  acknowledge(group, { EC23: reason, EC2RestrictedSSH: reason, EC2RestrictedCommonPorts: reason });
}
