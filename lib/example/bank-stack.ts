import { CfnOutput, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { AttributeType, Billing, TableV2 } from 'aws-cdk-lib/aws-dynamodb';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import { lambdaEntry, ServiceFunction, type ServiceFunctionProps } from '../functions/service-function.ts';
import { type Stage, stackProps } from './stage.ts';

/** The bank: a stand-in for a third-party system, with its own function and table and without a Mailroom. */
export class BankStack extends Stack {
  /** Invoked with a charge request. */
  readonly bank: IFunction;

  constructor(
    scope: Construct,
    id: string,
    stage: Stage,
    { encryptionKey, tracing }: Pick<ServiceFunctionProps, 'encryptionKey' | 'tracing'>,
  ) {
    super(scope, id, stackProps(stage, 'bank'));
    const keep = stage.removalPolicy !== RemovalPolicy.DESTROY;
    const ledger = new TableV2(this, 'Ledger', {
      partitionKey: { name: 'PK', type: AttributeType.STRING },
      sortKey: { name: 'SK', type: AttributeType.STRING },
      billing: Billing.onDemand(),
      pointInTimeRecoverySpecification: keep ? { pointInTimeRecoveryEnabled: true } : undefined,
      deletionProtection: keep,
      removalPolicy: stage.removalPolicy,
    });
    const bank = new ServiceFunction(this, 'Bank', {
      entry: lambdaEntry('example/bank/handler'),
      service: 'bank',
      description: 'A stand-in for the bank',
      timeout: Duration.minutes(1),
      environment: { BANK_TABLE: ledger.tableName },
      logRemovalPolicy: stage.removalPolicy,
      encryptionKey,
      tracing,
    });
    ledger.grant(bank, 'dynamodb:GetItem', 'dynamodb:PutItem', 'dynamodb:UpdateItem');
    this.bank = bank;
    new CfnOutput(this, 'BankTableName', { value: ledger.tableName });
  }
}
