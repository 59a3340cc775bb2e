import { Pool } from 'pg';
import { ThingHappened } from '../support/runtime-rig.ts';
import { nodePostgres, postgresConsumer, postgresHandlers } from './consumer-parts.ts';

/** A worker that charges, writes its payment, and is killed before its COMMIT. Arguments: the database and the event. */
const [, , connectionString, eventId = ''] = process.argv;
const database = nodePostgres(new Pool({ connectionString }));
const { leased } = postgresHandlers(database);

const handler = leased(ThingHappened, async (_event, ctx) => {
  await ctx.once('charge', async () => 'charged by the first worker');
  await ctx.commit(async (tx) => {
    await tx.query('INSERT INTO payment (event_id, note) VALUES ($1, $2)', [eventId, 'the first worker']);
    process.stdout.write('written\n');
    return new Promise(() => {});
  });
});

await postgresConsumer(database, [handler]).deliver(eventId);
