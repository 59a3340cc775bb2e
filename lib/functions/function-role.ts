import {
  type AddToPrincipalPolicyResult,
  ManagedPolicy,
  PolicyStatement,
  Role,
  ServicePrincipal,
} from 'aws-cdk-lib/aws-iam';
import type { Construct } from 'constructs';

/** Permissions of a function in a VPC (Lambda developer guide, "Giving Lambda functions access to resources in an Amazon VPC"). */
const NETWORK_INTERFACES = [
  'ec2:AssignPrivateIpAddresses',
  'ec2:CreateNetworkInterface',
  'ec2:DeleteNetworkInterface',
  'ec2:DescribeNetworkInterfaces',
  'ec2:DescribeSubnets',
  'ec2:UnassignPrivateIpAddresses',
];

/**
 * The execution role of a function. Its grants are in a managed policy: an inline policy has no versions to roll back to, and the
 * compliance packs of cdk-nag reject it.
 */
export class FunctionRole extends Role {
  private readonly granted: ManagedPolicy;

  constructor(scope: Construct, id: string) {
    super(scope, id, { assumedBy: new ServicePrincipal('lambda.amazonaws.com') });
    this.granted = new ManagedPolicy(this, 'Grants', { roles: [this] });
  }

  override addToPrincipalPolicy(statement: PolicyStatement): AddToPrincipalPolicyResult {
    this.granted.addStatements(statement);
    return { statementAdded: true, policyDependable: this.granted };
  }

  /** Lets Lambda attach the function to a VPC: the CDK grants that only to roles that it creates itself. */
  allowNetworkInterfaces(): void {
    this.addToPrincipalPolicy(new PolicyStatement({ actions: NETWORK_INTERFACES, resources: ['*'] }));
  }
}
