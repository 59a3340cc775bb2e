import { Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, test } from 'vitest';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import { InboxConsumer, type InboxConsumerProps, Mailroom } from '../../lib/index.ts';
import { type Resource, resources, testApp } from './synth.ts';

type Named = Pick<InboxConsumerProps, 'name' | 'movedFrom'>;

const until = (day: number) => new Date(Date.UTC(2026, 10, day));
const payments: Named = { name: 'payments' };
const billing: Named = { name: 'billing', movedFrom: [{ name: 'payments', until: until(1) }] };
const charging: Named = {
  name: 'charging',
  movedFrom: [...(billing.movedFrom ?? []), { name: 'billing', until: until(2) }],
};

describe('a deploy that changes a consumer’s name', () => {
  test.each<[string, Named, Named]>([
    ['without movedFrom', payments, { name: 'billing' }],
    ['for the second time without movedFrom', billing, { ...billing, name: 'charging' }],
    ['that omits the previous name', billing, { name: 'charging', movedFrom: charging.movedFrom?.slice(1) }],
    ['that omits all previous names', billing, { name: 'charging' }],
    [
      'that states another name than it had',
      payments,
      { ...charging, movedFrom: charging.movedFrom?.slice(1) },
    ],
  ])('a change of the name %s is refused, because a parameter of that name exists', (_, before, after) => {
    expect(taken(deployed(before), deployed(after))).not.toEqual([]);
  });

  test.each<[string, Named, Named]>([
    ['is stated', payments, billing],
    ['is stated once more', billing, charging],
    ['is rolled back', billing, payments],
  ])('a change of the name that %s is accepted', (_, before, after) => {
    expect(taken(deployed(before), deployed(after))).toEqual([]);
  });

  test('a deployment that changes anything but the name is accepted', () => {
    const after = deployed(payments, {
      events: [{ source: 'orders', type: 'OrderPaid' }],
      retry: { maxAttempts: 7 },
    });
    expect(taken(deployed(payments), after)).toEqual([]);
  });

  test('changes neither the function nor its rights before it is refused', () => {
    const template = deployed(billing);
    const names = Object.keys(guards(template));
    expect(names).toHaveLength(2);
    for (const type of ['AWS::Lambda::Function', 'AWS::IAM::Role', 'AWS::IAM::ManagedPolicy']) {
      const [[, resource] = []] = Object.entries(resources(template, type)).filter(([id]) =>
        id.startsWith('Consumer'),
      );
      expect(resource?.DependsOn, type).toEqual(expect.arrayContaining(names));
    }
  });

  test("passes its function the start of its inbox's history", () => {
    const variables = (named: Named) => {
      const functions = Object.entries(resources(deployed(named), 'AWS::Lambda::Function'));
      return functions.find(([id]) => id.startsWith('Consumer'))?.[1].Properties.Environment.Variables;
    };
    expect(variables(charging).MAILROOM_INBOX_SINCE).toBe(String(until(2).getTime()));
    expect(variables(payments)).not.toHaveProperty('MAILROOM_INBOX_SINCE');
  });
});

describe('earlier names are refused', () => {
  const earlier = (name: string, day = 1) => ({ name, until: until(day) });
  test.each<[string, Named, string]>([
    ['that are not names', { name: 'a', movedFrom: [earlier('B')] }, 'movedFrom[0].name is "B", but must be'],
    [
      'that are its own',
      { name: 'a', movedFrom: [earlier('a')] },
      'movedFrom[0].name is "a", the current name',
    ],
    [
      'that come twice',
      { name: 'a', movedFrom: [earlier('b'), earlier('b', 2)] },
      'movedFrom[1].name is "b", the same as movedFrom[0]',
    ],
    [
      'without a time',
      { name: 'a', movedFrom: [{ name: 'b', until: new Date('soon') }] },
      'movedFrom[0].until is Invalid Date, but must be a valid date',
    ],
    [
      'newest first',
      { name: 'a', movedFrom: [earlier('b', 2), earlier('c', 1)] },
      'movedFrom[1].until is 2026-11-01T00:00:00.000Z, but must be after 2026-11-02T00:00:00.000Z',
    ],
  ])('%s', (_, named, message) => {
    expect(() => deployed(named)).toThrow(message);
  });
});

function deployed(named: Named, more: Partial<InboxConsumerProps> = {}): Template {
  const stack = new Stack(testApp(), 'Test');
  new InboxConsumer(stack, 'Consumer', {
    mailroom: new Mailroom(stack, 'Mailroom'),
    service: 'orders',
    events: [{ source: 'orders', type: 'OrderPlaced' }],
    entry: lambdaEntry('example/inventory/handler'),
    ...named,
    ...more,
  });
  return Template.fromStack(stack);
}

/** The parameters that hold a consumer's names. */
function guards(template: Template): Record<string, Resource> {
  const parameters = Object.entries(resources(template, 'AWS::SSM::Parameter'));
  return Object.fromEntries(
    parameters.filter(([, { Properties }]) => JSON.stringify(Properties.Name).includes('/inboxes/')),
  );
}

/**
 * The names of parameters that an update would have to create although they are there: CloudFormation creates what is new
 * before it deletes what is gone, and tells resources apart by their logical ids.
 */
function taken(before: Template, after: Template): string[] {
  const held = new Map(
    Object.entries(guards(before)).map(([id, { Properties }]) => [nameOf(Properties), id]),
  );
  return Object.entries(guards(after))
    .map(([id, { Properties }]) => [nameOf(Properties), id] as const)
    .filter(([name, id]) => held.has(name) && held.get(name) !== id)
    .map(([name]) => name);
}

function nameOf(properties: Resource['Properties']): string {
  return JSON.stringify(properties.Name);
}
