import { expect, test } from 'vitest';
import { UNKNOWN } from '../../cli/deployment/declared-resources.ts';
import { READERS } from '../../cli/deployment/deployed-properties.ts';
import { compareResource, together } from '../../cli/reports/drift/compare.ts';
import { KINDS } from '../../cli/reports/drift/resource-kinds.ts';
import { STACKS, synthStage } from './synth.ts';

const { templates } = synthStage('prod');
const resources = STACKS.flatMap((name) =>
  Object.entries(
    templates[name].toJSON().Resources as Record<string, { Type: string; Properties?: object }>,
  ).map(([logicalId, { Type: type, Properties = {} }]) => ({
    ...{ type, logicalId, physicalId: logicalId, part: name, stack: { stack: name } },
    properties: { ...Properties } as Readonly<Record<string, unknown>>,
  })),
);

/** The types that `doctor` names as not compared: none of their members changes which events are delivered, or another check covers them. */
const NAMED = [
  'AWS::CloudWatch::Dashboard',
  'AWS::Events::Archive',
  'AWS::IAM::ManagedPolicy',
  'AWS::IAM::Role',
  'AWS::KMS::Key',
  'AWS::Lambda::Url',
  'AWS::Logs::LogGroup',
  'AWS::SNS::Topic',
  'AWS::SNS::TopicPolicy',
];

test('every type of resource in the order system is compared, or named as not compared', () => {
  const types = new Set(resources.map(({ type }) => type));
  expect([...types].filter((type) => !(type in KINDS)).sort()).toEqual(NAMED);
});

type Properties = Readonly<Record<string, unknown>>;

/** Compares each resource, with another value in place of each reference on both sides. */
function compared(declared: (reference: unknown) => unknown, deployed: (reference: unknown) => unknown) {
  return together(
    resources.flatMap((resource) => {
      const kind = KINDS[resource.type];
      const members = READERS[resource.type]?.members ?? [];
      if (kind === undefined) return [];
      const properties = resolved(resource.properties, deployed) as Properties;
      const own = { ...resource, properties: resolved(resource.properties, declared) as Properties };
      return [compareResource(own, { properties, members }, kind)];
    }),
  );
}

function resolved(value: unknown, to: (reference: unknown) => unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => resolved(one, to));
  const [name = '', ...others] = Object.keys(value);
  if (others.length === 0 && (name === 'Ref' || name.startsWith('Fn::'))) return to(value);
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, resolved(one, to)]));
}

test('the order system has no difference from itself', () => {
  const { differences, allowed, notCompared, members } = compared(JSON.stringify, JSON.stringify);
  expect({ differences, allowed }).toEqual({ differences: [], allowed: [] });
  expect(members).toBeGreaterThan(1_000);
  expect(new Set(notCompared.map(({ type, member }) => `${type} ${member}`))).toMatchInlineSnapshot(`
    Set {
      "AWS::Events::EventBus Description",
      "AWS::Events::EventBus Tags",
      "AWS::SQS::Queue Tags",
      "AWS::Lambda::Function Code",
      "AWS::Lambda::Function Description",
      "AWS::Lambda::Function Tags",
      "AWS::Lambda::EventSourceMapping Tags",
      "AWS::Events::Rule Description",
      "AWS::Events::Rule Tags",
      "AWS::SSM::Parameter Description",
      "AWS::SSM::Parameter Tags",
      "AWS::SSM::Parameter Tier",
    }
  `);
});

test('references that only AWS resolves are not reported as differences, and are counted', () => {
  const { differences, notCompared } = compared(
    // The region is that of the endpoint.
    (reference) =>
      JSON.stringify(reference).includes('AWS::Region"}') ? JSON.stringify(reference) : UNKNOWN,
    JSON.stringify,
  );
  expect(differences).toEqual([]);
  expect(notCompared.filter(({ why }) => why === 'known to AWS only').length).toBeGreaterThan(50);
});

test('every declared member that is read is compared: a change of it is a difference of this member or of one inside it', () => {
  for (const resource of resources) {
    const kind = KINDS[resource.type];
    if (kind === undefined) continue;
    const members = READERS[resource.type]?.members ?? [];
    for (const member of Object.keys(resource.properties).filter((name) => members.includes(name))) {
      const properties = { ...resource.properties, [member]: 'changed by hand' };
      const { differences, allowed } = compareResource(resource, { properties, members }, kind);
      const found = [...differences, ...allowed].map(({ member: path = '' }) => path.split('.')[0]);
      expect(new Set(found), `${resource.type} ${member}`).toEqual(new Set([member]));
    }
  }
});
