import { beforeAll, describe, expect, test } from 'vitest';
import { constructsParts } from './constructs-parts.ts';
import type { Parts } from './parts.ts';
import { appliedBefore, type Configuration, readTerraform } from './terraform-configuration.ts';
import { terraformParts } from './terraform-parts.ts';

let configuration: Configuration;
let terraform: Parts;
const constructs = constructsParts();

beforeAll(async () => {
  configuration = await readTerraform('docs/examples/terraform/');
  terraform = terraformParts(configuration);
});

describe('the Terraform configuration', () => {
  test('the Terraform configuration has exactly the resources that the constructs deploy', () => {
    expect(Object.keys(terraform).sort()).toEqual(Object.keys(constructs).sort());
  });

  test.each(Object.keys(constructs))('the Terraform configuration has the %s of the constructs', (name) => {
    expect(terraform[name]).toEqual(constructs[name]);
  });

  test('applies the rule after the function and its permissions, and the producer after the relay', () => {
    expect([...appliedBefore(configuration, 'aws_cloudwatch_event_rule.receipts_rule')]).toEqual(
      expect.arrayContaining([
        'aws_lambda_function.receipts',
        'aws_iam_role_policy.receipts',
        'aws_lambda_event_source_mapping.receipts',
        'aws_sqs_queue_policy.receipts_queue',
        'aws_sqs_queue_policy.receipts_undelivered',
      ]),
    );
    expect([...appliedBefore(configuration, 'aws_lambda_function.place_order')]).toEqual(
      expect.arrayContaining([
        'aws_iam_role_policy.place_order',
        'aws_lambda_event_source_mapping.stream_relay',
        'aws_cloudwatch_event_target.sweep_schedule',
        'aws_lambda_permission.sweep_schedule',
      ]),
    );
    expect([...appliedBefore(configuration, 'aws_lambda_event_source_mapping.stream_relay')]).toContain(
      'aws_iam_role_policy.stream_relay',
    );
  });
});
