import { describe, expect, test } from 'vitest';
import { UNKNOWN } from '../../../cli/deployment/declared-resources.ts';
import { type Template, valueResolver } from '../../../cli/deployment/template-values.ts';

const names: Readonly<Record<string, unknown>> = {
  'AWS::Region': 'eu-central-1',
  Stage: 'prod',
  Zones: ['a', 'b'],
  Queue: 'https://sqs/q',
};

function resolved(value: unknown, template: Template = {}): unknown {
  return valueResolver(template, {
    reference: (name) => names[name] ?? UNKNOWN,
    attribute: (id, name) => (id === 'Queue' && name === 'Arn' ? 'arn:q' : UNKNOWN),
    imported: (name) => (name === 'prod:Table' ? 'orders' : UNKNOWN),
  })(value);
}

describe('a value of a template', () => {
  test.each([
    [{ Ref: 'Stage' }, 'prod'],
    [{ 'Fn::GetAtt': ['Queue', 'Arn'] }, 'arn:q'],
    [{ 'Fn::GetAtt': 'Queue.Arn' }, 'arn:q'],
    [{ 'Fn::Join': ['-', ['a', { Ref: 'Stage' }, 1]] }, 'a-prod-1'],
    [{ 'Fn::Join': [',', { Ref: 'Zones' }] }, 'a,b'],
    [{ 'Fn::Split': ['/', { Ref: 'Queue' }] }, ['https:', '', 'sqs', 'q']],
    [{ 'Fn::Select': ['1', { Ref: 'Zones' }] }, 'b'],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the language of Fn::Sub
    [{ 'Fn::Sub': 'a ${Stage} ${Queue.Arn} ${!Stage} ${AWS::Region}' }, 'a prod arn:q ${Stage} eu-central-1'],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the language of Fn::Sub
    [{ 'Fn::Sub': ['${Own}/${Stage}', { Own: { Ref: 'Queue' } }] }, 'https://sqs/q/prod'],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the language of Fn::Sub
    [{ 'Fn::ImportValue': { 'Fn::Sub': '${Stage}:Table' } }, 'orders'],
    [
      { A: { B: [{ Ref: 'Stage' }, { Ref: 'AWS::NoValue' }] }, C: { Ref: 'AWS::NoValue' } },
      { A: { B: ['prod'] } },
    ],
    [{ Statement: { Condition: { Bool: { 'aws:SecureTransport': 'false' } } } }, 'itself'],
    [{ Condition: 'a name' }, 'itself'],
    [0, 'itself'],
    [false, 'itself'],
    ['', 'itself'],
    [{}, 'itself'],
  ])('%j is resolved', (value, expected) => {
    expect(resolved(value)).toEqual(expected === 'itself' ? value : expected);
  });

  test.each([
    [{ Ref: 'Nothing' }],
    [{ Ref: ['Stage'] }],
    [{ 'Fn::GetAtt': ['Queue', 'Unheard'] }],
    [{ 'Fn::GetAtt': [] }],
    [{ 'Fn::GetAtt': null }],
    [{ 'Fn::Join': ['-', ['a', { Ref: 'Nothing' }]] }],
    [{ 'Fn::Join': ['-', [['a']]] }],
    [{ 'Fn::Join': 'text' }],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the language of Fn::Sub
    [{ 'Fn::Sub': 'a ${Nothing}' }],
    [{ 'Fn::Sub': [] }],
    [{ 'Fn::Split': ['/', { Ref: 'Zones' }] }],
    [{ 'Fn::Select': [7, { Ref: 'Zones' }] }],
    [{ 'Fn::Select': ['length', { Ref: 'Zones' }] }],
    [{ 'Fn::ImportValue': 'of no stack' }],
    [{ 'Fn::GetAZs': '' }],
    [{ 'Fn::constructor': '' }],
    ['{{resolve:secretsmanager:arn:SecretString:password}}'],
    [{ 'Fn::Join': ['', ['postgres://{{resolve:', 'ssm:name}}']] }],
    [null],
  ])('%j is unknown', (value) => {
    expect(resolved(value)).toBe(UNKNOWN);
    expect(resolved({ Inner: [value] })).toEqual({ Inner: [UNKNOWN] });
  });

  test('a selected element is known beside unknown ones', () => {
    expect(resolved({ 'Fn::Select': [0, ['a', { Ref: 'Nothing' }]] })).toBe('a');
  });
});

describe('a condition', () => {
  const Conditions = {
    IsProd: { 'Fn::Equals': [{ Ref: 'Stage' }, 'prod'] },
    IsDev: { 'Fn::Equals': [{ Ref: 'Stage' }, 'dev'] },
    Unsure: { 'Fn::Equals': [{ Ref: 'Nothing' }, 'dev'] },
    Both: { 'Fn::And': [{ Condition: 'IsProd' }, { 'Fn::Not': [{ Condition: 'IsDev' }] }] },
    One: { 'Fn::Or': [{ Condition: 'IsDev' }, { Condition: 'IsProd' }] },
    NeverMind: { 'Fn::Or': [{ Condition: 'Unsure' }, { Condition: 'IsProd' }] },
    FalseAnyway: { 'Fn::And': [{ Condition: 'Unsure' }, { Condition: 'IsDev' }] },
    Egg: { 'Fn::Not': [{ Condition: 'Hen' }] },
    Hen: { 'Fn::Not': [{ Condition: 'Egg' }] },
    Odd: { 'Fn::Xor': [] },
  };

  test.each([
    ['IsProd', 'then'],
    ['IsDev', 'otherwise'],
    ['Both', 'then'],
    ['One', 'then'],
    ['NeverMind', 'then'],
    ['FalseAnyway', 'otherwise'],
    ['Unsure', UNKNOWN],
    ['Egg', UNKNOWN],
    ['Hen', UNKNOWN],
    ['Odd', UNKNOWN],
    ['Missing', UNKNOWN],
    ['toString', UNKNOWN],
  ])('%s chooses %s', (condition, expected) => {
    expect(resolved({ 'Fn::If': [condition, 'then', 'otherwise'] }, { Conditions })).toBe(expected);
  });

  test('without a value removes the member', () => {
    const value = { A: { 'Fn::If': ['IsDev', 1, { Ref: 'AWS::NoValue' }] }, B: 2 };
    expect(resolved(value, { Conditions })).toEqual({ B: 2 });
  });
});
