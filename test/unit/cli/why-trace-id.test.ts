import { expect, test } from 'vitest';
import { readTrace } from '../../../cli/reports/why/trace-reader.ts';
import { eventReports, traceText } from '../../../cli/reports/why/trace-text.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { withStored } from '../../support/with-stored.ts';
import { directory, mailroomInMemory } from './support/mailroom-in-memory.ts';

const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const traceId = 'Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1';

test.each([
  ['that of its trace context', { traceparent, traceId }, '4bf92f3577b34da6a3ce929d0e0e4736'],
  ['that of its X-Ray header', { traceId }, '1-5759e988-bd862e3fe1be46a994272793'],
  ['none', {}, null],
  ['none that is malformed', { traceId: 'Root=\u001b[31mred' }, null],
])('the trace id of an event is %s', async (_, context, expected) => {
  const mailroom = mailroomInMemory([]);
  const event = ThingHappened.create({ aggregateId: '1', data: { n: 1 }, ...context });
  const [written] = await mailroom.outbox.commit({ events: [event] });
  const deps = { directory, table: mailroom.table, queues: mailroom.queues };
  const trace = await readTrace(withStored(deps), [written?.eventId ?? '']);
  expect(eventReports(trace, false)).toMatchObject([{ traceId: expected }]);
  const lines = traceText(trace).split('\n');
  expect(lines.filter((line) => line.includes('trace '))).toEqual(
    expected === null ? [] : [expect.stringContaining(`trace ${expected}`)],
  );
});
