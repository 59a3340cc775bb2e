import { expect, test } from 'vitest';
import { commandsOf, shownCommandsOf } from './shell.ts';

test('commands end at a line, at && and at a pipe, and a comment is not a command', () => {
  expect(
    commandsOf('npm ci && npm run demo   # 200 orders; then\n# npm run x\naws s3 ls | jq -r .a\n'),
  ).toEqual([
    ['npm', 'ci'],
    ['npm', 'run', 'demo'],
    ['aws', 's3', 'ls'],
    ['jq', '-r', '.a'],
  ]);
});

test('a line that ends with a backslash goes on in the next', () => {
  expect(commandsOf('npx cdk deploy \\\n  --all\n')).toEqual([['npx', 'cdk', 'deploy', '--all']]);
});

test('a quoted text is one word, and placeholders are filled', () => {
  const [[, , , , place, , reason] = []] = commandsOf(
    "npx cdk-mailroom dlq redrive consumer:<name> --reason 'it is fixed'",
  );
  expect(place).toMatch(/^consumer:[0-9a-f-]{36}$/);
  expect(reason).toBe('it is fixed');
  expect(commandsOf('npx cdk-mailroom why <order or event id>')[0]?.[3]).toMatch(/^[0-9a-f-]{36}$/);
});

test('commands in the text are found, even across lines, but not those in blocks', () => {
  const page =
    'Type `npx cdk-mailroom\nstatus`, or `npm run demo`; `mailroom why` is a name.\n\n```sh\nnpm run local\n```\n';
  expect(shownCommandsOf(page)).toEqual([
    ['npx', 'cdk-mailroom', 'status'],
    ['npm', 'run', 'demo'],
  ]);
});
