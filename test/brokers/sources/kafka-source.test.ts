import { inject } from 'vitest';
import { startKafkaPlaces } from '../places/kafka-places.ts';
import { describeSource } from './source-tests.ts';

const jars = inject('kafka');

describeSource({
  broker: 'Kafka',
  isMissing: jars === undefined,
  start: () => startKafkaPlaces(jars ?? '', 'kafka-source'),
  keepsOrder: true,
});
