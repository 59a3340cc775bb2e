import {
  type AddToPrincipalPolicyResult,
  ManagedPolicy,
  type PolicyStatement,
  Role,
  ServicePrincipal,
} from 'aws-cdk-lib/aws-iam';
import type { Construct } from 'constructs';

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
}
