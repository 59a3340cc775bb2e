import { inject } from 'vitest';
import { startRabbitPlaces } from '../places/rabbit-places.ts';
import { describeSource } from './source-tests.ts';

const debian = inject('debian');

describeSource({
  broker: 'RabbitMQ',
  isMissing: debian === undefined,
  start: async () => {
    if (debian === undefined) throw new Error('The tests are skipped.');
    return await startRabbitPlaces(debian, 'rabbit-source');
  },
  keepsOrder: false,
});
