import type { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, test } from 'vitest';
import { type Resource, STACKS, synthStage } from './synth.ts';

/** What starts the flow, and what handles it: the first is deployed after the second, so that no old code meets a new event. */
const STARTERS = ['AWS::Events::Rule', 'AWS::Lambda::EventSourceMapping'];

const { templates } = synthStage('prod');
const starters = STACKS.flatMap((stack) =>
  Object.entries(resourcesOf(templates[stack]))
    .filter(([, { Type }]) => STARTERS.includes(Type))
    .map(([id]) => [stack, id] as const),
);

test('there are rules, schedules and mappings to look at', () => {
  // A rule and a mapping for each of four consumers; the mapping of the stream; the schedules of sweep, audit and heartbeat.
  expect(starters).toHaveLength(4 * 2 + 1 + 3);
});

describe('whatever starts the flow is deployed after the code that handles it', () => {
  test.each(starters)('%s: %s', (stack, id) => {
    const resources = resourcesOf(templates[stack]);
    const before = deployedBefore(resources, id);
    const handlers = handlersOf(resources, id);
    expect(handlers).not.toEqual([]);
    expect(before).toEqual(expect.arrayContaining(handlers));
  });
});

test('a new event type reaches a consumer after its function and its mapping were updated', () => {
  const { DependsOn } = Object.values(resourcesOf(templates.Payments)).find(
    ({ Type }) => Type === 'AWS::Events::Rule',
  ) as Resource;
  expect(DependsOn).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^PaymentsFunction[0-9A-F]{8}$/),
      expect.stringMatching(/^PaymentsFunctionSqsEventSource/),
    ]),
  );
});

function resourcesOf(template: Template): Record<string, Resource> {
  return template.toJSON().Resources;
}

/** The functions, and between a rule and a function the mappings, that a starter sets going. */
function handlersOf(resources: Record<string, Resource>, id: string): string[] {
  const { Type, Properties } = resources[id] as Resource;
  const ofType = (type: string, ids: readonly string[]) =>
    ids.filter((each) => resources[each]?.Type === type);
  if (Type === 'AWS::Lambda::EventSourceMapping')
    return ofType('AWS::Lambda::Function', references(Properties.FunctionName));
  const targets = (Properties.Targets as { readonly Arn: unknown }[]).flatMap(({ Arn }) => references(Arn));
  const mappings = Object.entries(resources)
    .filter(([, { Type: type }]) => type === 'AWS::Lambda::EventSourceMapping')
    .filter(([, mapping]) =>
      references(mapping.Properties.EventSourceArn).some((each) => targets.includes(each)),
    )
    .map(([mapping]) => mapping);
  return [
    ...ofType('AWS::Lambda::Function', targets),
    ...mappings.flatMap((mapping) => [mapping, ...handlersOf(resources, mapping)]),
  ];
}

/** What CloudFormation creates and updates before a resource. */
function deployedBefore(resources: Record<string, Resource>, id: string, seen = new Set<string>()): string[] {
  const { DependsOn = [], ...rest } = resources[id] ?? {};
  for (const each of [...[DependsOn].flat(), ...references(rest)]) {
    if (seen.has(each) || !(each in resources)) continue;
    seen.add(each);
    deployedBefore(resources, each, seen);
  }
  return [...seen];
}

/** The logical ids that a value refers to. */
function references(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    if (key === 'Ref') return [String(inner)];
    if (key === 'Fn::GetAtt') return [String([inner].flat()[0])];
    return references(inner);
  });
}
