import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const FOLDER = 'lambdas/runtime/consume';

/** The text of every call of a logger, up to the parenthesis that closes it. */
function logCalls(text: string): string[] {
  return [...text.matchAll(/\blog\.(?:warn|error|info|debug)\(/g)].map(({ index, 0: begin }) => {
    let open = 1;
    let end = index + begin.length;
    for (; open > 0 && end < text.length; end += 1)
      open += ({ '(': 1, ')': -1 } as never)[text[end] ?? ''] ?? 0;
    return text.slice(index, end);
  });
}

test('every log line of a consumer has the event id, by which mailroom logs finds it', () => {
  const calls = readdirSync(FOLDER).flatMap((file) => logCalls(readFileSync(`${FOLDER}/${file}`, 'utf8')));
  expect(calls.length).toBeGreaterThan(8);
  expect(calls.filter((call) => !call.includes('eventId'))).toEqual([]);
});
