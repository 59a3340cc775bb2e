import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { runMailroom } from '../../cli/program.ts';
import { capturedIo } from '../support/captured-io.ts';
import { resources, synthStage } from './synth.ts';

const page = readFileSync(new URL('../../docs/operating.md', import.meta.url), 'utf8');

/** Commands that have subcommands. */
const GROUPS = new Set(['dlq', 'events', 'messages', 'mysql', 'order', 'postgres']);

describe('a command that an alarm tells the person on call to run', () => {
  const inPage = [...page.matchAll(/`(?:npx cdk-)?mailroom ([a-z][^`]*)`/g)].map(
    ([, command]) => command ?? '',
  );
  const inAlarms = [...JSON.stringify(alarms()).matchAll(/npx cdk-mailroom (.*?) --region /g)].map(
    ([, command]) => command ?? '',
  );
  const commands = [...new Set([...inPage, ...inAlarms])].sort();

  test('commands are found in the page and in the alarms', () => {
    expect(inPage.length).toBeGreaterThan(40);
    expect(inAlarms.length).toBeGreaterThan(40);
  });

  test.each(commands)('mailroom %s is a command', async (command) => {
    const words = command.split(' ');
    const name = words.slice(0, GROUPS.has(words[0] ?? '') ? 2 : 1);
    const help = await helpOf(name);
    expect(help).toContain(`Usage: npx cdk-mailroom ${name.join(' ')} `);
    for (const [flag] of command.matchAll(/--[a-z]+/g)) expect(help).toContain(flag);
  });
});

async function helpOf(name: readonly string[]): Promise<string> {
  const { io, written } = capturedIo();
  const code = await runMailroom([...name, '--help'], io);
  expect(code).toBe(0);
  return written.out;
}

function alarms() {
  return resources(synthStage('prod').templates.Operations, 'AWS::CloudWatch::Alarm');
}
