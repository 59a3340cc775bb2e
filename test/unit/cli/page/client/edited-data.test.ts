import { describe, expect, test } from 'vitest';
import { editedData, storedData } from '../../../../../cli/page/client/dead-letters/edited-data.ts';

describe('the data of a dead letter', () => {
  test('is that of the event in the body', () => {
    const body = JSON.stringify({
      'detail-type': 'OrderPlaced',
      detail: { eventId: 'e-1', data: { total: 1 } },
    });
    expect(storedData(body)).toEqual({ is: 'data', data: { total: 1 } });
  });

  test.each([
    '',
    'null',
    '[]',
    '"text"',
    '{"detail":null}',
    '{"detail":{"data":1}}',
    '{"detail":{"eventId":"e-1"}}',
  ])('is absent in %j', (body) => {
    expect(storedData(body)).toMatchObject({ is: 'none', why: expect.stringContaining('not an event') });
  });

  test('is in S3 if the event has a reference in its place', () => {
    const body = '{"detail":{"eventId":"e-1","payload":{"bucket":"b","key":"events/e-1"}}}';
    expect(storedData(body)).toEqual({
      is: 'none',
      why: 'Its payload is in S3. To send other data, pass the whole of it to `dlq resend` in a file.',
    });
  });

  test('is not offered for editing if a number in it would be rounded', () => {
    const body = '{"detail":{"eventId":"e-1","data":{"account":12345678901234567890}}}';
    expect(storedData(body)).toEqual({
      is: 'none',
      why: 'The number 12345678901234567890 has more digits than JavaScript keeps, so it would be rounded.',
    });
  });
});

describe('edited data', () => {
  test('is any JSON', () => {
    expect(editedData('{"total": 10.25}')).toEqual({ is: 'data', data: { total: 10.25 } });
    expect(editedData('null')).toEqual({ is: 'data', data: null });
  });

  test('is refused if it is not JSON', () => {
    expect(editedData('{"total": 10')).toMatchObject({
      is: 'wrong',
      problem: expect.stringMatching(/^Not JSON: /),
    });
    expect(editedData('')).toMatchObject({ is: 'wrong' });
  });

  test.each(['9007199254740993', '0.12345678901234567', '1e999', '1e-400', '-12345678901234567890'])(
    'is refused if %s in it would change',
    (number) => {
      expect(editedData(`{"n":[${number}]}`)).toMatchObject({
        is: 'wrong',
        problem: expect.stringContaining(number),
      });
    },
  );

  test.each([
    '9007199254740991',
    '1.00000000000000000000',
    '"9007199254740993"',
    '"\\"9007199254740993"',
    '0.1',
    '1e3',
  ])('may contain %s', (value) => {
    expect(editedData(`[${value}]`)).toMatchObject({ is: 'data' });
  });
});
