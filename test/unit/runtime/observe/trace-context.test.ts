import { describe, expect, test, vi } from 'vitest';
import {
  sampledXRayHeader,
  traceContextOf,
  xrayTraceIdOf,
} from '../../../../lambdas/runtime/observe/trace-context.ts';

const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

describe('a traceparent', () => {
  test.each([traceparent, traceparent.replace(/01$/, '00'), traceparent.replace(/^00/, 'fe')])(
    '%s is taken',
    (value) => {
      expect(traceContextOf({ traceparent: value })).toEqual({ traceparent: value });
    },
  );

  test.each([
    ['is missing', undefined],
    ['is not text', 42],
    ['is empty', ''],
    ['has the forbidden version', traceparent.replace(/^00/, 'ff')],
    ['is in capitals', traceparent.toUpperCase()],
    ['has a trace id of zeros', `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`],
    ['has a span id of zeros', `00-4bf92f3577b34da6a3ce929d0e0e4736-${'0'.repeat(16)}-01`],
    ['is cut', traceparent.slice(0, -1)],
    ['goes on', `${traceparent}-extra`],
    ['ends with a line break', `${traceparent}\n`],
  ])('a traceparent that %s is dropped', (_, value) => {
    expect(traceContextOf({ traceparent: value, tracestate: 'a=1' })).toBeUndefined();
  });
});

describe('a tracestate', () => {
  const of = (tracestate: unknown) => traceContextOf({ traceparent, tracestate })?.tracestate;

  test.each(['rojo=00f067aa0ba902b7', 'a=1, b@tenant=2', `a=${'x'.repeat(254)},b=${'x'.repeat(253)}`])(
    '%s is taken',
    (value) => {
      expect(of(value)).toBe(value);
    },
  );

  test.each([
    ['is not text', {}],
    ['is empty', ''],
    ['is longer than 512 characters', `a=${'x'.repeat(254)},b=${'x'.repeat(254)}`.padEnd(513, 'x')],
    ['has no value', 'a'],
    ['has a name in capitals', 'A=1'],
    ['has control characters', 'a=1\u0007'],
    ['has line breaks between its members', 'a=1,\r\nb=2'],
    ['has 33 members', Array.from({ length: 33 }, (_, i) => `k${i}=1`).join(',')],
  ])('a tracestate that %s is dropped, and its traceparent kept', (_, value) => {
    expect(traceContextOf({ traceparent, tracestate: value })).toEqual({ traceparent });
  });
});

describe('the X-Ray header of an invocation', () => {
  const root = 'Root=1-5759e988-bd862e3fe1be46a994272793';
  const sampled = `${root};Parent=557abcec3ee5a047;Sampled=1`;

  test.each([
    ['is taken if sampled', sampled, sampled],
    ['is taken without its lineage', `${sampled};Lineage=25:3c1d4e2f:0`, sampled],
    ['is taken without a malformed parent', `${root};Parent=secret;Sampled=1`, `${root};Sampled=1`],
    ['is not taken if unsampled', `${root};Parent=557abcec3ee5a047;Sampled=0`, undefined],
    ['is not taken if undecided', root, undefined],
    ['is not taken if malformed', 'Root=1-2-3;Sampled=1', undefined],
  ])('%s', (_, header, expected) => {
    vi.stubEnv('_X_AMZN_TRACE_ID', header);
    expect(sampledXRayHeader()).toBe(expected);
  });

  test('is that of the current one of several concurrent invocations', () => {
    vi.stubEnv('_X_AMZN_TRACE_ID', sampled.replace('5759e988', '00000000'));
    vi.stubGlobal('awslambda', { InvokeStore: { getXRayTraceId: () => sampled } });
    expect(sampledXRayHeader()).toBe(sampled);
    vi.unstubAllGlobals();
  });

  test('has a trace id, unless it is malformed', () => {
    expect(xrayTraceIdOf(sampled)).toBe('1-5759e988-bd862e3fe1be46a994272793');
    expect([xrayTraceIdOf('Root=x'), xrayTraceIdOf(undefined), xrayTraceIdOf(7)]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });
});
