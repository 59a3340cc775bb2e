import { stripVTControlCharacters } from 'node:util';
import { beforeEach, describe, expect, test } from 'vitest';
import { discardText } from '../../../cli/changes/discard/discard-report.ts';
import { planText } from '../../../cli/changes/redrive/redrive-report.ts';
import { redrivenText } from '../../../cli/changes/redrive/redriven-text.ts';
import type { DeadLetterSource } from '../../../cli/reports/dead-letters/dead-letters.ts';
import { listText } from '../../../cli/reports/dead-letters/list-dead-letters.ts';
import type { JudgedDeadLetter, RedriveVerdict } from '../../../cli/reports/dead-letters/redrive-plan.ts';
import { type ShellText, shell } from '../../../cli/terminal/shell.ts';
import { reportOf } from '../../../cli/terminal/terminal.ts';
import { DAY_MS } from '../../../lambdas/runtime/base/units.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import type { InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { review } from './support/captured-output.ts';

const NOW = 100 * DAY_MS;
const place = { stack: 'mailroom-dev', account: '111122223333', region: 'eu-west-1' };
const source: DeadLetterSource = {
  name: 'consumer:payments',
  kind: 'consumer',
  url: 'dead-letters',
  consumer: { name: 'payments' } as ConsumerEntry,
};
const deployment = {
  clock: { now: () => NOW, sleep: async () => {} },
  commandLine: (command: ShellText) => `npx cdk-mailroom ${command} --stage dev`,
  awsLine: (command: ShellText) => `aws ${command} --region eu-west-1`,
};

const NONE = { done: [], handled: [], superseded: [], back: [], waiting: [], untried: [] };

let made = 100;

beforeEach(() => {
  made = 100;
});

/** Dead letters of one cause, each younger than the one before. */
function letters(
  count: number,
  verdict: RedriveVerdict,
  fingerprint: string | undefined,
  more: Partial<JudgedDeadLetter> = {},
): JudgedDeadLetter[] {
  return Array.from({ length: count }, (): JudgedDeadLetter => {
    made += 1;
    const [id, sentAt] = [`letter-${made}`, NOW - DAY_MS + made];
    const expiresAt = NOW + 13 * DAY_MS + made;
    return {
      id,
      eventId: `event-${made}`,
      type: 'T',
      sentAt,
      expiresAt,
      fingerprint,
      lastError: 'e',
      verdict,
      ...more,
    };
  });
}

function planned(judged: readonly JudgedDeadLetter[], options = {}, at: DeadLetterSource = source): string {
  const plan = {
    place,
    source: at,
    judged,
    received: { deadLetters: judged, total: judged.length },
    choice: {},
  };
  return planText(deployment, plan, options);
}

const BANK = 'payments BankError: The bank answered #';
const INVALID = 'payments INVALID_PAYLOAD: data.n is missing';
const TIMEOUT = 'payments Timeout: no answer';
const INVALID_ROW = { status: 'REJECTED', reason: 'INVALID_PAYLOAD' } as InboxRow;

const refused = (n: number) => ({ code: 'INVALID_PAYLOAD', message: `data.n is "${n}"` });
const forty = () => [
  ...letters(15, 'runs', BANK),
  ...letters(15, 'fails', INVALID, { row: INVALID_ROW }).map((letter, n) => ({ ...letter, ...refused(n) })),
  ...letters(10, 'runs', TIMEOUT),
];

describe('a plan of forty dead letters of three causes', () => {
  test('is one screen: stack, account and region, then each cause with its count, verdict, expiry and an example', async () => {
    const judged = forty();
    const text = planned(judged);
    expect(text.split('\n').length).toBeLessThanOrEqual(24);
    for (const { id } of judged) expect(text).not.toContain(id);
    await review('dlq-redrive-plan-grouped', `$ mailroom dlq redrive consumer:payments\n\n${text}\n`);
    const again = planned(forty(), { reason: 'the bank is back', limit: 40 });
    expect(again).toContain(
      "redrive consumer:payments --limit 40 --apply --reason 'the bank is back' --stage dev",
    );
  });

  test('shows each of them on request, and always up to ten', () => {
    const judged = forty();
    const text = planned(judged, { verbose: true });
    for (const { id } of judged) expect(text).toContain(id);
    const [first, ...others] = letters(11, 'runs', BANK);
    for (const { id } of others) expect(planned(others)).toContain(id);
    expect(planned([...others, ...(first === undefined ? [] : [first])])).not.toContain('letter-');
  });

  test('says for what the deployed code refuses them, if that is not why they died', () => {
    const died = letters(11, 'fails', BANK).map((letter, n) => ({ ...letter, ...refused(n) }));
    expect(unwrapped(planned(died))).toMatch(/^.* 11 .* BankError: .* now: INVALID_PAYLOAD: /);
  });

  test('names the earliest expiry of a cause', () => {
    const [first] = letters(1, 'runs', BANK, { expiresAt: NOW + DAY_MS });
    const text = planned([...letters(11, 'runs', BANK), ...(first === undefined ? [] : [first])]);
    expect(unwrapped(text)).toMatch(/ 12 .* in 1 d/);
  });
});

describe('the remedies of a plan', () => {
  test('select by id where a cause would select others, too', () => {
    const fails = letters(2, 'fails', INVALID, { code: 'INVALID_PAYLOAD' });
    const text = planned([...letters(1, 'runs', INVALID), ...fails]);
    expect(text).toContain(`dlq discard consumer:payments ${fails.map(({ id }) => id).join(' ')} `);
    const hostile = planned([...letters(2, 'fails', 'no code \\u001b'), ...letters(1, 'runs', BANK)]);
    expect(hostile).not.toContain('--cause');
  });

  test('allow what was rejected as too old, and resolve what has no row', () => {
    const row = { status: 'REJECTED' } as JudgedDeadLetter['row'];
    const [rejected] = letters(1, 'too-old', undefined, { row });
    const [never] = letters(1, 'too-old', undefined);
    const text = planned([rejected, never].flatMap((letter) => letter ?? []));
    expect(text).toContain(`messages allow payments ${rejected?.eventId} --stage dev`);
    expect(text).toContain(`messages resolve payments ${never?.eventId} --stage dev`);
    expect(text).not.toContain('--apply');
  });

  test('have no placeholders but the reason', () => {
    for (const verdict of ['fails', 'too-old', 'busy', 'unreadable'] as const)
      expect(planned(letters(3, verdict, BANK))).not.toMatch(/<\w+>|…|'\.\.\.'/);
    const stream = { name: 'stream', kind: 'stream', url: 'failures' } as const;
    const text = planned(letters(1, 'fails', undefined), {}, stream);
    expect(text).toMatch(
      /npx cdk-mailroom sweep --since 25h --shards 256 --stage dev\n {2}npx cdk-mailroom dlq discard stream letter-\d+/,
    );
  });
});

describe('a list', () => {
  test('a list of more than ten dead letters is grouped with the verdicts of a redrive, and plans one', async () => {
    const judged = forty();
    const list = { source, total: 40, deadLetters: judged, grouped: true };
    const text = listText(deployment, [{ ...list, judged }], NOW);
    await review('dlq-list-grouped', `$ mailroom dlq list --by cause\n\n${text}\n`);
    const unchecked = listText(deployment, [list], NOW);
    await review('dlq-list-unchecked', `$ mailroom dlq list --by cause\n\n${unchecked}\n`);
  });

  test('a list of DEAD events shows their age, because they do not expire', () => {
    const deadLetters = letters(12, 'runs', BANK, { expiresAt: undefined });
    const dead = { source: { name: 'dead', kind: 'dead' } as const, total: 12, deadLetters, grouped: true };
    expect(unwrapped(listText(deployment, [dead], NOW))).toMatch(/count oldest example 12 (1 d|23 h)/);
  });
});

test('a command is one line whatever a cause contains', () => {
  const text = planned(letters(3, 'fails', "payments: it's `off` $(now)").concat(letters(1, 'runs', BANK)));
  expect(text).toContain(shell`dlq discard consumer:payments --cause ${"payments: it's `off` $(now)"}`);
});

test('a redrive that Ctrl-C stopped says how many dead letters remain, and prints the command that continues', () => {
  const judged = letters(40, 'runs', 'payments BankError');
  const done = judged.slice(0, 8);
  const left = judged.slice(8).map((deadLetter) => ({ deadLetter, why: 'stopped' }) as const);
  const received = { deadLetters: judged, total: 40 };
  const stopped = (choice: object, options: object, waiting = judged.slice(0, 0)) =>
    unwrapped(
      redrivenText(
        deployment,
        { place, source, judged, received, choice },
        { done, handled: [], superseded: [], back: [], waiting, untried: left },
        { reason: 'the bank is back', interrupted: true, ...options },
      ),
    );
  const line = (words: string) =>
    `npx cdk-mailroom dlq redrive consumer:payments${words} --apply --reason 'the bank is back' --stage dev`;
  expect(stopped({}, {})).toContain(line(''));
  expect(stopped({ cause: 'Bank' }, { limit: 40, rate: 2, wait: 90_000 })).toContain(
    line(' --cause Bank --limit 32 --rate 2 --wait 90s'),
  );
  // The id of a dead letter that was redriven would be refused.
  expect(stopped({ ids: ['letter-none', judged[9]?.id ?? ''] }, {})).toContain(line(` ${judged[9]?.id}`));
  expect(stopped({}, {}, judged.slice(7, 8))).toContain(line(''));
});

test('a redrive names the remedy of what was superseded meanwhile, as it is printed', () => {
  const judged = letters(2, 'runs', BANK);
  const received = { deadLetters: judged, total: judged.length };
  const plan = { place, source, judged, received, choice: {} };
  const redriven = { ...NONE, done: judged.slice(1), superseded: judged.slice(0, 1) };
  const report = reportOf({}, { plan, redriven }, (seen) =>
    redrivenText(deployment, seen.plan, seen.redriven),
  );
  expect(String(report.text())).toContain(`dlq discard consumer:payments ${judged[0]?.id}`);
});

test.each([15, 2])(
  'a discard of %d dead letters that was applied counts them, without an expiry',
  (count) => {
    const steps = letters(count, 'runs', BANK).map(
      (deadLetter, n) => ({ deadLetter, outcome: n === 0 ? 'handled' : 'discarded' }) as const,
    );
    const plan = { place, source, choice: {}, same: [] };
    const text = unwrapped(discardText(deployment, plan, steps, { reason: 'a load test' }));
    expect(text).toMatch(new RegExp(`${count - 1} discarded, 1 handled\\.$`));
    expect(text).not.toMatch(/expir|--verbose/);
  },
);

test('a list of ten or fewer shows a cause that several share once, above them', () => {
  const [bank, other] = [letters(3, 'runs', BANK), letters(1, 'runs', TIMEOUT)];
  const unknown = letters(2, 'runs', undefined);
  const [first, ...rest] = bank;
  const deadLetters = [...(first === undefined ? [] : [first]), ...other, ...rest, ...unknown];
  const list = { source, total: deadLetters.length, deadLetters, grouped: false };
  expect(stripVTControlCharacters(listText(deployment, [list], NOW)).replace(/ago .*$/gm, 'ago')).toBe(
    [
      'consumer:payments: 6',
      'dead letter  since            expires',
      `3 with one cause: ${BANK}`,
      ...bank.flatMap(({ id, eventId }) => [`${id}   23 h 59 min ago`, `  T ${eventId}`]),
      ...other.flatMap(({ id, eventId }) => [`${id}   23 h 59 min ago`, `  T ${eventId}`, `  ${TIMEOUT}`]),
      ...unknown.flatMap(({ id, eventId }) => [`${id}   23 h 59 min ago`, `  T ${eventId}`, '  -']),
      'To see which would run again:',
      '  npx cdk-mailroom dlq redrive consumer:payments --stage dev',
    ].join('\n'),
  );
  expect(planned([...bank])).toContain(`3 with one cause: ${BANK}`);
});
