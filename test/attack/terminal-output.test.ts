import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { runMailroom } from '../../cli/program.ts';
import { EXIT } from '../../cli/terminal/io.ts';
import { paint } from '../../cli/terminal/paint.ts';
import { reportError } from '../../cli/terminal/report-error.ts';
import { shell } from '../../cli/terminal/shell.ts';
import { createTerminal, reportOf } from '../../cli/terminal/terminal.ts';
import { errorHelp } from '../../lambdas/runtime/base/documentation.ts';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { capturedIo } from '../support/captured-io.ts';
import { ACTS, hostile } from './hostile-text.ts';

/** What was written, without the colors and the line codes of the command itself. */
function withoutOwnCodes(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the command writes them
  return text.replaceAll('\r\u001b[K', '').replace(/\u001b\[(?:1|2|22|31|32|33|39)m/g, '');
}

describe('a text stored by someone else', () => {
  test.each([true, false])(
    'a result shows it as one line of visible characters; on a terminal: %s',
    async (isTerminal) => {
      const { io, written } = capturedIo({ isTerminal });
      const rows = [{ [hostile('name')]: [hostile('value')] }];
      const report = reportOf(rows, rows, ([row]) =>
        Object.entries(row ?? {})
          .map(([name, values]) => `${paint.red('own')} ${name} ${values.join()}`)
          .join('\n'),
      );
      await createTerminal(io, false).print(report);
      expect(withoutOwnCodes(written.out)).not.toMatch(ACTS);
      expect(written.out.trimEnd().split('\n')).toHaveLength(1);
      expect(written.out).toContain('<value>\\u001b]0;title\\u0007');
      expect(written.out).toContain('\\u202egnp.exe');
      expect(written.out.includes(paint.red('own'))).toBe(isTerminal);
    },
  );

  test('moves nothing even where a text is made of it without the copy', async () => {
    const { io, written } = capturedIo({ isTerminal: true });
    await createTerminal(io, false).print(reportOf({}, '', () => hostile('forgotten')));
    expect(withoutOwnCodes(written.out)).not.toMatch(ACTS);
  });

  test('JSON contains the same text in one line of visible characters', async () => {
    const { io, written } = capturedIo({ isTerminal: true });
    const value = { [hostile('name')]: hostile('value') };
    await createTerminal(io, true).print(reportOf(value, '', String));
    expect(written.out.trimEnd()).not.toMatch(ACTS);
    expect(written.out.trimEnd().split('\n')).toHaveLength(1);
    expect(JSON.parse(written.out)).toEqual(value);
  });

  test('notes, progress and errors show it as one paragraph of visible characters, and no line begins with it', () => {
    const { io, written } = capturedIo({ isTerminal: true });
    const terminal = createTerminal(io, false);
    terminal.say(hostile('note'));
    terminal.progress(hostile('progress'));
    reportError(new MailroomError('NO_SUCH_STAGE', hostile('error')), false, io);
    reportError(Object.assign(new Error(hostile('aws')), { name: hostile('code') }), false, io);
    expect(withoutOwnCodes(written.err)).not.toMatch(ACTS);
    const lines = withoutOwnCodes(written.err).trimEnd().split('\n');
    expect(lines.filter((line) => !line.startsWith('  '))).toEqual([
      expect.stringMatching(/^<note>/),
      expect.stringMatching(/^<progress>.*NO_SUCH_STAGE:$/),
      errorHelp('NO_SUCH_STAGE'),
      'UNKNOWN:',
    ]);
    const machine = capturedIo();
    reportError(new Error(hostile('aws')), true, machine.io);
    expect(machine.written.err.trimEnd()).not.toMatch(ACTS);
    expect(JSON.parse(machine.written.err).error.message).toBe(hostile('aws'));
  });

  test('an error about arguments shows it in visible characters', async () => {
    const { io, written } = capturedIo({ isTerminal: true });
    expect(await runMailroom([hostile('command')], io)).toBe(EXIT.usage);
    expect(withoutOwnCodes(written.err)).not.toMatch(ACTS);
    expect(written.err).toContain('\\u001b]0;title');
  });
});

test.each([
  'plain',
  "it's",
  '$(touch /tmp/x)',
  '`id`',
  '"; rm -rf / #',
  'a b',
  '',
  '*',
  '!!',
  '\\',
  "'",
  '~',
  'x\ny',
])('a printed command gives the shell the word %j, and runs nothing of it', (word) => {
  const echoed = execFileSync('sh', ['-c', shell`printf '[%s]' ${word} ${[word, 'and']}`], {
    encoding: 'utf8',
  });
  expect(echoed).toBe(`[${word}][${word}][and]`);
});
