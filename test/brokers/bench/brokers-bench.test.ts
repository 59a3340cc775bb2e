import { expect, inject, test } from 'vitest';
import { brokers } from '../../../bench/brokers.ts';

test('the benchmark carries every event to and from each broker that runs here', async () => {
  const installed = [
    'none',
    ...(inject('debian') === undefined ? [] : ['JetStream', 'RabbitMQ']),
    ...(inject('kafka') === undefined ? [] : ['Kafka']),
  ];
  const { json, tables } = await brokers.run({ say: () => {}, quick: true, install: true });
  const figures = json.brokers as readonly Readonly<Record<string, unknown>>[];
  const measured = installed.flatMap((broker) => [`${broker} out`, `${broker} in`]);
  expect(figures.map(({ broker, direction }) => `${broker} ${direction}`)).toEqual(measured);
  for (const { broker, plainPerSecond, mailroomPerSecond } of figures) {
    expect(mailroomPerSecond).toBeGreaterThan(0);
    if (broker !== 'none') expect(plainPerSecond).toBeGreaterThan(0);
  }
  for (const { rows } of tables) expect(rows).toHaveLength(installed.length);
});
