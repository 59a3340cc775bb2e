import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { sentencesReadIn } from './sentences.ts';

const ROOT = new URL('../../', import.meta.url);

const FOLDERS = ['bench', 'cli', 'demo', 'lambdas', 'lib', 'localstack', 'testing', 'verify'];

/** Cuts a sentence for display, or joins it to another one: nothing is decided. */
const DISPLAY = 'display';
/** The other program has no code for it. */
const NO_CODE = 'no code';
/** The text is what a person types, or a text that is not a sentence. */
const TYPED = 'typed';

/** The places that may read a sentence, by file: a part of the line, and why. */
const ALLOWED: Readonly<Record<string, readonly (readonly [code: string, why: string])[]>> = {
  'bench/command.ts': [
    ['line.split(', TYPED],
    ['line.replace(eventId', DISPLAY],
  ],
  'cli/changes/republish.ts': [['refusal.message.replace(', DISPLAY]],
  'cli/page/client/dead-letters/sources.ts': [['(group.fingerprint ?? ', TYPED]],
  'cli/page/client/frame/controls.tsx': [['line.match(', DISPLAY]],
  'cli/page/server/polling.ts': [['message.replace(', DISPLAY]],
  'cli/page/server/readings.ts': [['errorMessage(error).replace(', DISPLAY]],
  'cli/reports/catalog/catalog-document.ts': [['errorMessage(error).replace(', DISPLAY]],
  'cli/reports/catalog/load-catalog.ts': [['errorMessage(error).trim()', DISPLAY]],
  // CloudWatch returns no attribute of an alarm but its description, of which one line is a command.
  'cli/reports/checks/alarm-checks.ts': [
    ['alarm.description.split(', DISPLAY],
    ['runLine(description).endsWith(ends)', NO_CODE],
    ['line = description.split(', NO_CODE],
    ["runLine(description).split(' --region ')", DISPLAY],
  ],
  // AWS names the missing action in its message alone.
  'cli/reports/checks/check.ts': [['message.includes(action)', NO_CODE]],
  'cli/reports/dead-letters/choice.ts': [['fingerprint.toLowerCase().includes(', TYPED]],
  'cli/terminal/arguments.ts': [['PLACEHOLDERS.test(reason', TYPED]],
  'cli/terminal/report-error.ts': [
    ['error.message.replace(', DISPLAY],
    ['message.replace(CREDENTIALS', DISPLAY],
  ],
  'lambdas/runtime/base/fingerprint.ts': [['.replace(', DISPLAY]], // the masks of a fingerprint
  'lambdas/runtime/consume/outage.ts': [['/^KMS [\\w ]*error:/', NO_CODE]],
  'lambdas/runtime/bridge/bridge.ts': [['message.slice(0, 300).replace(', DISPLAY]],
  'lambdas/runtime/bridge/rabbit-target.ts': [
    ['/ACCESS[-_]REFUSED|ConnectionOpenOk; got <ConnectionClose/', NO_CODE],
    ['/size/', NO_CODE],
  ],
  'lambdas/runtime/observe/redaction.ts': [["line.startsWith('    at ')", DISPLAY]], // a stack
  'lambdas/runtime/operations/sqs-queues.ts': [['/receipt ?handle/i', NO_CODE]],
  'lambdas/runtime/postgres/audited-rows.ts': [['UNREACHABLE.test(', NO_CODE]],
  'lambdas/runtime/postgres/orm-databases.ts': [['text.matchAll(', TYPED]], // SQL
  'lib/consumer/existing-queue.ts': [['replaceAll(', DISPLAY]],
  // The CDK prints its progress only as lines.
  'localstack/deploy-progress.ts': [['.exec(line)', NO_CODE]],
};

/** A file of a program that decides by words. */
const PLANTED = `
export function decide({ row, reason, error }: Facts) {
  // reason.includes('known') in a comment is not found
  const [, next] = /as ([0-9a-f-]{36}): /.exec(row.discardedReason ?? '') ?? [];
  if (row.lastError?.includes('over the limit')) return 'too-large';
  if ((reason ?? '').toLowerCase().startsWith('sent again')) return next;
  const [code] = operation.subject.split(' until ');
  if (TOO_LARGE.test(\`\${row.fingerprint ?? ''} \${code}\`)) return 'too-large';
  if (errorMessage(error) === 'Region is missing') return 'no-region';
  if (row.reason === 'EVENT_TOO_OLD') return 'too-old';
  return findings.some(({ what }) => what
    .toLowerCase()
    .includes('dead letters'));
}
`;

const found = FOLDERS.flatMap((folder) =>
  readdirSync(new URL(folder, ROOT), { recursive: true, encoding: 'utf8' })
    .map((file) => `${folder}/${file.replaceAll('\\', '/')}`)
    .filter((path) => /\.tsx?$/.test(path))
    .sort()
    .flatMap((path) =>
      sentencesReadIn(readFileSync(new URL(path, ROOT), 'utf8')).map((read) => ({ path, ...read })),
    ),
);

describe('a program decides on attributes, codes and members', () => {
  test('it reads no sentence that another part or a person wrote', () => {
    const isAllowed = ({ path, code }: (typeof found)[number]) =>
      ALLOWED[path]?.some(([part]) => code.includes(part)) ?? false;
    const violations = found.filter((read) => !isAllowed(read));
    expect(
      violations.map(({ path, line, name, code }) => `${path}:${line}: the words of ${name} decide: ${code}`),
    ).toEqual([]);
  });

  test('each exception still exists', () => {
    const isUsed = (path: string, part: string) =>
      found.some((read) => read.path === path && read.code.includes(part));
    const unused = Object.entries(ALLOWED).flatMap(([path, parts]) =>
      parts.filter(([part]) => !isUsed(path, part)).map(([part]) => `${path}: ${part}`),
    );
    expect(unused).toEqual([]);
  });

  test('the law finds a planted violation of each kind', () => {
    expect(sentencesReadIn(PLANTED).map(({ line, name }) => `${line} ${name}`)).toEqual([
      '4 discardedReason',
      '5 lastError',
      '6 reason',
      '7 subject',
      '8 fingerprint',
      '9 errorMessage(error)',
      '13 what',
    ]);
  });
});
