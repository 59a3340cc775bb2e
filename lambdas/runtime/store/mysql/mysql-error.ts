/**
 * Returns the number that MySQL gives an error, e.g. 1213; `undefined` if it has none, such as that of a lost connection. Drizzle and others
 * keep it in `cause`, TypeORM in `driverError`.
 */
export function mysqlErrno(error: unknown): number | undefined {
  try {
    return errnoIn(error);
  } catch {
    return undefined; // an error of a handler whose members cannot be read: its connection must be released also then
  }
}

/** The errors of the operating system have negative numbers, and those of MySQL begin at 1000. */
const SERVER_ERRNO_MIN = 1_000;

function errnoIn(error: unknown): number | undefined {
  for (const { errno } of layersOf(error))
    if (typeof errno === 'number' && errno >= SERVER_ERRNO_MIN) return errno;
  return undefined;
}

/**
 * The error, and those that it wraps. Not the cause of `TRANSACTION_ENDED`: it may be the error of a deadlock, and code that has committed a part of its
 * work must not be repeated for it.
 */
function* layersOf(error: unknown): Generator<Readonly<Record<string, unknown>>> {
  let next = error;
  for (let depth = 0; depth < 5 && typeof next === 'object' && next !== null; depth += 1) {
    const layer = next as Readonly<Record<string, unknown>>;
    if (layer.code === 'TRANSACTION_ENDED') return;
    yield layer;
    next = layer.driverError ?? layer.cause;
  }
}

/**
 * The transaction was rolled back, or must be, because of others: a deadlock (1213), a lock that was not released in time (1205), a row that
 * changed after the snapshot of MariaDB 11 (1020).
 */
const CONTENDED: ReadonlySet<number> = new Set([1020, 1205, 1213]);

/** The server is read-only, as after a failover: `read_only` (1290), a transaction of a replica (1792), `innodb_read_only` (1836). */
const READ_ONLY: ReadonlySet<number> = new Set([1290, 1792, 1836]);

/** The server or the session stops: 1053, 1077, 1079, 1152, 1184, 1927, 4031. */
const STOPPING: ReadonlySet<number> = new Set([1053, 1077, 1079, 1152, 1184, 1927, 4031]);

/** The server is full or busy: connections (1040, 1203, 1226), memory, threads, disk (1021, 1037, 1038, 1041, 1114, 1135, 1637), a statement out of time (1317, 1969, 3024), a node that is not ready (1047). */
const BUSY: ReadonlySet<number> = new Set([
  1021, 1037, 1038, 1040, 1041, 1047, 1114, 1135, 1203, 1226, 1317, 1637, 1969, 3024,
]);

/** Returns true if a transaction may succeed when all of it is repeated: the database rolled it back, and no COMMIT was sent. */
export function isRepeatable(error: unknown): boolean {
  const errno = mysqlErrno(error);
  return errno !== undefined && (CONTENDED.has(errno) || READ_ONLY.has(errno));
}

/** Returns true if a transaction that changes nothing the second time may succeed when it is repeated, sooner or later. */
export function isRetryable(error: unknown): boolean {
  const errno = mysqlErrno(error);
  return errno !== undefined && [CONTENDED, READ_ONLY, STOPPING, BUSY].some((group) => group.has(errno));
}

/** Returns true if a connection must not be used again: the next one may reach another server. */
export function isStale(error: unknown): boolean {
  const errno = mysqlErrno(error);
  return errno !== undefined && (READ_ONLY.has(errno) || STOPPING.has(errno));
}

/** Statements that were ended because they took too long: 1317, 1969, 3024. */
const OUT_OF_TIME: ReadonlySet<number> = new Set([1317, 1969, 3024]);

/** Returns true if a statement of the handler failed because the server stopped, is full or read-only, or the connection ended. */
export function isServerGone(error: unknown): boolean {
  const errno = mysqlErrno(error);
  if (errno === undefined) return isConnectionLost(error);
  return isStale(error) || (BUSY.has(errno) && !OUT_OF_TIME.has(errno));
}

/** Returns true if the connection ended: `mysql2` marks such errors as fatal, which have no number of the server. */
export function isConnectionLost(error: unknown): boolean {
  try {
    for (const { fatal } of layersOf(error)) if (fatal === true) return true;
  } catch {
    // an error of a handler whose members cannot be read
  }
  return false;
}

/** Returns true for an error of a connection, not of a statement: of `mysql2`, which marks it as fatal, or of the operating system. */
export function isOfConnection(error: unknown): boolean {
  if (mysqlErrno(error) !== undefined) return false;
  return isConnectionLost(error) || typeof Object(error).syscall === 'string';
}
