import { inject } from 'vitest';
import { startJetStreamPlaces } from '../places/jet-stream-places.ts';
import { describeSource } from './source-tests.ts';

const debian = inject('debian');

describeSource({
  broker: 'JetStream',
  isMissing: debian === undefined,
  start: () => startJetStreamPlaces(debian?.natsServer ?? '', 'nats-source'),
  keepsOrder: false,
});
