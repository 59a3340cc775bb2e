import { type App, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { beforeAll, describe, expect, test } from 'vitest';
import { CONSUMERS } from '../../demo/readings.ts';
import { orderSystem } from '../../lib/example/order-system.ts';
import { BY_THE_HOUR } from '../../verify/plan.ts';
import { type Attempted, type Attempts, PROBES } from '../account/attempts.ts';
import type { ProbeCall } from '../account/probe.handler.ts';
import { verifiedSystem, verifyStage } from '../account/verified-system.ts';
import { ACCOUNT, type DeployedPart, deployedParts, REGION } from './access/deployed-parts.ts';
import { askOf, type Principal, rolesOf, type Verdict } from './access/permissions.ts';
import { mailroomTable } from './access/role-table.ts';
import { type Resource, testApp } from './synth.ts';

const NAME = 'verify-x7k2q9mt';
const IN_AWS = { CDK_DEFAULT_ACCOUNT: ACCOUNT, CDK_DEFAULT_REGION: REGION };
const ON_AN_ENGINE = { AWS_ENDPOINT_URL: 'http://127.0.0.1:4566' };

function verifiedApp(env: Readonly<Record<string, string>>): App {
  const app = testApp();
  verifiedSystem(app, verifyStage(NAME, env));
  return app;
}

const stacksOf = (app: App): Stack[] => app.node.children.filter(Stack.isStack);

function resourcesOf(app: App): [id: string, resource: Resource][] {
  return stacksOf(app).flatMap((stack) =>
    Object.entries(Template.fromStack(stack).toJSON().Resources as Record<string, Resource>).map(
      ([id, resource]): [string, Resource] => [`${stack.node.id}/${id}`, resource],
    ),
  );
}

let app: App;
let onAnEngine: App;

beforeAll(() => {
  app = verifiedApp(IN_AWS);
  onAnEngine = verifiedApp(ON_AN_ENGINE);
});

describe('the verified system', () => {
  test('shares no stack name with another deployment, and every stack can be deleted', () => {
    expect(stacksOf(app)).toHaveLength(8);
    for (const { stackName, terminationProtection, account, region } of stacksOf(app)) {
      expect(stackName).toMatch(new RegExp(`^mailroom-${NAME}(-[a-z]+)?$`));
      expect({ terminationProtection, account, region }).toEqual({
        terminationProtection: false,
        account: ACCOUNT,
        region: REGION,
      });
    }
  });

  test.each([
    ['in AWS', () => app],
    ['on a local engine', () => onAnEngine],
  ])('leaves nothing behind: no resource %s is retained or protected', (_, appOf) => {
    const made = resourcesOf(appOf());
    expect(made.length).toBeGreaterThan(100);
    const kept = made.filter(([, { DeletionPolicy, Properties }]) => {
      return (
        DeletionPolicy?.startsWith('Retain') ||
        /"DeletionProtectionEnabled":true/.test(JSON.stringify(Properties))
      );
    });
    expect(kept.map(([id]) => id)).toEqual([]);
  });

  test('its API requires a signature, also on a local engine', () => {
    for (const made of [app, onAnEngine]) {
      const urls = resourcesOf(made).filter(([, { Type }]) => Type === 'AWS::Lambda::Url');
      expect(urls.map(([, { Properties }]) => Properties.AuthType)).toEqual(['AWS_IAM']);
    }
  });

  test('it has no more resources that are paid by the hour than the stated price includes', () => {
    const count = (type: string) => resourcesOf(app).filter(([, { Type }]) => Type === type).length;
    const counts = {
      keys: count('AWS::KMS::Key'),
      alarms: count('AWS::CloudWatch::Alarm'),
      compositeAlarms: count('AWS::CloudWatch::CompositeAlarm'),
      dashboards: count('AWS::CloudWatch::Dashboard'),
    };
    expect(counts.alarms).toBeGreaterThan(0);
    for (const [kind, made] of Object.entries(counts))
      expect(made, kind).toBeLessThanOrEqual(BY_THE_HOUR[kind as keyof typeof counts].count);
    const metricsOf = (alarm: Resource) => Math.max(1, alarm.Properties.Metrics?.length ?? 1);
    const onMetrics = resourcesOf(app)
      .filter(([, { Type }]) => Type === 'AWS::CloudWatch::Alarm')
      .reduce((sum, [, alarm]) => sum + metricsOf(alarm), 0);
    expect(onMetrics).toBeLessThanOrEqual(BY_THE_HOUR.alarms.count);
    const others = resourcesOf(app).filter(([, { Type }]) => /NatGateway|Kinesis|::DB|Archive/.test(Type));
    expect(others).toEqual([]);
  });

  test('gives its roles the rights of the order system, and nothing more: three probes run with deployed roles', () => {
    const plain = testApp();
    orderSystem(plain, verifyStage(NAME, IN_AWS));
    const probes = new Set(
      stacksOf(app)
        .slice(-1)
        .map(({ node }) => node.id),
    );
    const policies = (made: App) =>
      resourcesOf(made).filter(
        ([id, { Type }]) =>
          /::(ManagedPolicy|Policy|QueuePolicy|Role)$/.test(Type) && !probes.has(id.split('/')[0] ?? ''),
      );
    expect(policies(app)).toEqual(policies(plain));
    expect(PROBES.slice(0, 3).map(({ output }) => roleOfProbe(output))).toEqual([
      'Payments/PaymentsFunctionRole',
      'Orders/ApiRole',
      'Mailroom/MailroomRelayStreamRole',
    ]);
  });
});

/** The role with which the function that an output names runs. */
function roleOfProbe(output: string): string {
  const parts = deployedParts(app);
  const id = output.replace(/^Probe/, '');
  const fn = parts.find(
    (part) => part.stack === 'Probes' && part.type === 'AWS::Lambda::Function' && part.id === id,
  );
  return rolesOf(parts).find(({ arn }) => arn === fn?.properties.Role)?.name ?? `no role of ${output}`;
}

describe.each(PROBES)('the attempts of $role', ({ output, attempts }) => {
  let judge: (call: ProbeCall) => Promise<Verdict>;
  let made: Attempts;

  beforeAll(() => {
    const parts = deployedParts(app);
    const role = rolesOf(parts).find(({ name }) => name === roleOfProbe(output));
    if (role === undefined) throw new Error(`No role of ${output}`);
    judge = judgeOf(parts, role);
    made = attempts(attempted(parts));
  });

  test('the deployed policies deny every forbidden attempt', async () => {
    expect(made.denied.length).toBeGreaterThan(4);
    for (const { what, call } of made.denied) expect(await judge(call), what).not.toBe('allow');
  });

  test('the deployed policies allow every permitted attempt', async () => {
    expect(made.allowed.length).toBeGreaterThan(0);
    for (const { what, call } of made.allowed) expect(await judge(call), what).toBe('allow');
  });
});

/** The names of what an app deploys, as a deployment's outputs and directory have them. */
function attempted(parts: readonly DeployedPart[]): Attempted {
  const named = (type: string, stack: string) =>
    parts.find((part) => part.type === type && part.stack === stack)?.name ?? `no ${type} in ${stack}`;
  const queues = Object.fromEntries(
    CONSUMERS.map((consumer) => {
      const part = parts.find(({ type, arn }) => type === 'AWS::SQS::Queue' && queueOf(consumer).test(arn));
      return [consumer, part?.name ?? ''];
    }),
  );
  return {
    table: mailroomTable([...parts]).name,
    bus: named('AWS::Events::EventBus', 'Mailroom'),
    outputs: {
      OpenBusName: named('AWS::Events::EventBus', 'Probes'),
      OpenQueueUrl:
        parts.find(({ type, id }) => type === 'AWS::SQS::Queue' && id.startsWith('OpenQueue'))?.name ?? '',
    },
    queue: (consumer) => queues[consumer] ?? '',
    duplicate: '{}',
  };
}

/** The source queue of a consumer has its name; CloudFormation names the others. */
function queueOf(consumer: string): RegExp {
  const id =
    consumer === 'order-status' ? 'OrderStatus' : `${consumer[0]?.toUpperCase()}${consumer.slice(1)}`;
  return new RegExp(`:mailroom-${NAME}-[a-z]+-${id}-`);
}

function judgeOf(parts: readonly DeployedPart[], role: Principal): (call: ProbeCall) => Promise<Verdict> {
  const ask = askOf(parts);
  const arnOf = (name: string | undefined) => parts.find((part) => part.name === name)?.arn ?? `no ${name}`;
  return (call) => {
    if (call.command === 'PutEvents') {
      const [entry] = call.input.Entries ?? [];
      const resource = arnOf(entry?.EventBusName);
      return ask(role, { action: 'events:PutEvents', resource, sources: [entry?.Source ?? ''] });
    }
    if (call.command === 'SendMessage')
      return ask(role, { action: 'sqs:SendMessage', resource: arnOf(call.input.QueueUrl) });
    return ask(role, { ...rowsOf(call), resource: mailroomTable([...parts]).arn });
  };
}

/** The IAM action of a call on the table, and its partition key. */
function rowsOf(call: ProbeCall): { readonly action: string; readonly key: string | undefined } {
  const [key] = /(INBOX|OUTBOX|ORDER|PAYMENT|VERIFY)#[^"\\]*/.exec(JSON.stringify(call.input)) ?? [];
  if (call.command !== 'ExecuteStatement') return { action: `dynamodb:${call.command}`, key };
  const verb = call.input.Statement?.startsWith('INSERT') ? 'Insert' : 'Delete';
  return { action: `dynamodb:PartiQL${verb}`, key };
}
