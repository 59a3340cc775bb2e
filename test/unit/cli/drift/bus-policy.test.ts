import { describe, expect, test } from 'vitest';
import { READERS } from '../../../../cli/deployment/deployed-properties.ts';
import { compareResource } from '../../../../cli/reports/drift/compare.ts';
import { differenceProblem } from '../../../../cli/reports/drift/difference-problem.ts';
import { KINDS } from '../../../../cli/reports/drift/resource-kinds.ts';
import { directory } from '../support/mailroom-in-memory.ts';

const BUS = 'arn:aws:events:eu-west-1:111122223333:event-bus/shop';
const role = (name: string) => `arn:aws:iam::111122223333:role/${name}`;

const deny = (Condition?: object, more: object = {}) => ({
  ...{ Sid: 'Added', Effect: 'Deny', Principal: '*', Action: 'events:PutEvents', Resource: BUS },
  ...(Condition && { Condition }),
  ...more,
});
const allow = (Principal: unknown, Condition?: object) => ({
  ...{ Sid: 'Added', Effect: 'Allow', Principal, Action: 'events:PutEvents', Resource: BUS },
  ...(Condition && { Condition }),
});

/** The statement of the bus itself. */
const own = {
  ...deny({
    ArnNotEquals: { 'aws:PrincipalArn': [role('relay')] },
    StringNotEquals: { 'aws:PrincipalTag/mailroom-publisher': 'shop' },
    Bool: { 'aws:PrincipalIsAWSService': 'false' },
  }),
  Sid: 'OnlyPublishersPut',
};

/** The statement by which a Mailroom of another app guards its services. */
const guard = deny({
  'ForAnyValue:StringEquals': { 'events:source': ['billing'] },
  ArnNotEquals: { 'aws:PrincipalArn': role('billing-relay') },
  Bool: { 'aws:PrincipalIsAWSService': 'false' },
});

function differences(...added: readonly object[]) {
  const type = 'AWS::Events::EventBus';
  const kind = KINDS[type];
  if (kind === undefined) throw new Error('It is not compared');
  const policy = (...Statement: readonly object[]) => ({ Version: '2012-10-17', Statement });
  const resource = {
    ...{ type, logicalId: 'Bus', physicalId: 'shop', part: 'bus', stack: directory.mailroom },
    properties: { Name: 'shop', Policy: policy(own) },
  };
  const members = READERS[type]?.members ?? [];
  const properties = { Policy: policy(...added) };
  const { differences: found, allowed } = compareResource(resource, { properties, members }, kind);
  expect(allowed).toEqual([]);
  return found.map((difference) => differenceProblem(difference).text);
}

describe('the policy of a bus', () => {
  test.each([
    ['the guard of another Mailroom', guard],
    [
      'the forwards that its owner accepts',
      deny({
        StringEquals: { 'aws:PrincipalTag/mailroom-forward': 'shop' },
        ArnNotEquals: { 'aws:PrincipalArn': role('forward') },
      }),
    ],
    [
      'the service of a forward',
      deny({
        ArnEquals: { 'aws:PrincipalArn': role('forward') },
        'ForAnyValue:StringNotEquals': { 'events:source': 'orders' },
      }),
    ],
    ['a Deny for a role of others', deny(undefined, { Principal: { AWS: role('intern') } })],
    ['a Deny of changing rules', deny(undefined, { Action: 'events:PutRule' })],
    ['an Allow for another account', allow({ AWS: 'arn:aws:iam::999999999999:root' })],
    ['an Allow for an organization', allow('*', { StringEquals: { 'aws:PrincipalOrgID': 'o-1' } })],
  ])('may have %s', (_what, statement) => {
    expect(differences(own, statement)).toEqual([]);
  });

  test.each([
    ['a Deny for everyone', deny()],
    ['of every action', deny(undefined, { Action: 'events:*' })],
    ['of all actions but others', deny(undefined, { Action: undefined, NotAction: 'events:PutRule' })],
    ['outside of a network', deny({ StringNotEquals: { 'aws:SourceVpc': 'vpc-1' } })],
    ['for all but one role', deny({ ArnNotEquals: { 'aws:PrincipalArn': role('admin') } })],
    ['for its relay', deny({ ArnEquals: { 'aws:PrincipalArn': role('relay') } })],
    ['for its relay as principal', deny(undefined, { Principal: { AWS: role('relay') } })],
    ['for its account', deny(undefined, { Principal: { AWS: 'arn:aws:iam::111122223333:root' } })],
    ['for roles by a pattern', deny({ ArnLike: { 'aws:PrincipalArn': 'arn:aws:iam::111122223333:role/*' } })],
    ['for all but others', deny(undefined, { Principal: undefined, NotPrincipal: { AWS: role('admin') } })],
    ['of every source', deny({ 'ForAnyValue:StringLike': { 'events:source': '*' } })],
  ])('differs by a Deny that stops its relay: %s', (_what, statement) => {
    const [text, ...others] = differences(guard, own, statement);
    expect(others).toEqual([]);
    expect(text).toMatch(/^bus: Policy of the bus shop has a Deny of /);
    expect(text).toMatch(/\(Added\), which its stack does not declare: publishers are refused, or /);
  });

  test.each([
    ['to everyone', allow('*')],
    ['to everyone by their account', allow({ AWS: '*' })],
    ['to all but some', { ...allow(undefined), NotPrincipal: { AWS: role('intern') } }],
  ])('differs by an Allow that is open %s', (_what, statement) => {
    const [text, ...others] = differences(guard, own, statement);
    expect(others).toEqual([]);
    expect(text).toContain('has an Allow of events:putevents');
    expect(text).not.toContain('billing');
  });

  test('differs if its own statement is gone, whatever others have added', () => {
    expect(differences(guard)).toEqual([expect.stringContaining('lacks a Deny of events:putevents for *')]);
  });
});
