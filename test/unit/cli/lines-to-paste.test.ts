import { describe, expect, test } from 'vitest';
import { notCheckedFindings, problemFindings } from '../../../cli/reports/findings/findings.ts';
import { isActionRequired } from '../../../cli/reports/why/event-state.ts';
import { WORDS } from '../../../cli/reports/why/message-words.ts';

// The compiler demands a command of each problem of a part and of each fact of a status: `CommandWords`, `Fact`.

const lines = {
  commandLine: (command: string) => `npx cdk-mailroom ${command} --stage dev`,
  awsLine: (command: string) => `aws ${command} --region eu-west-1`,
};

test.each(Object.entries(WORDS).filter(([, words]) => isActionRequired(words)))(
  'why has a command for a message that is %s, because action is required',
  (_, { next }) => {
    expect(next).toBeTypeOf('function');
  },
);

/** The cases of a message that no command moves on, each with the reason. */
const WITHOUT_COMMAND = {
  processed: 'it is done',
  discarded: 'it is done',
  leased: 'a worker is working on it',
  waiting: 'its consumer takes it within minutes',
};

test('why leaves out the command only where an operator has nothing to do', () => {
  const without = Object.entries(WORDS).filter(([, { next }]) => next === undefined);
  expect(without.map(([found]) => found).sort()).toEqual(Object.keys(WITHOUT_COMMAND).sort());
});

describe('checks that were not made', () => {
  const commandsOf = (why?: string) => {
    const notChecked = [{ needs: ['kms:DescribeKey'], parts: ['account'], ...(why && { why }) }];
    return notCheckedFindings({ problems: [], notChecked, skipped: [] }, lines).map(
      ({ commands }) => commands,
    );
  };

  test('for want of a permission: the command names the role that lacks it', () => {
    expect(commandsOf()).toEqual([['aws sts get-caller-identity --region eu-west-1']]);
  });

  test('because of a stack: the command shows the states of the stacks', () => {
    expect(commandsOf('CloudFormation has no stack orders')).toEqual([
      [
        "aws cloudformation describe-stacks --query 'Stacks[].[StackName,StackStatus]' --output text --region eu-west-1",
      ],
    ]);
  });
});

test('a problem without a repair has its own line before the one that shows who changed it', () => {
  const problem = {
    ...{ part: 'producers', problem: 'producer' as const, level: 'surroundings' as const, text: 'x' },
    fix: ['aws', 'cloudformation', 'describe-stack-resources'] as const,
  };
  const [finding] = problemFindings([problem], lines);
  expect(finding?.commands).toEqual([
    'aws cloudformation describe-stack-resources --region eu-west-1',
    expect.stringContaining('aws cloudtrail lookup-events'),
  ]);
});
