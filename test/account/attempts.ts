import { randomUUID } from 'node:crypto';
import { type Consumer, required } from '../../demo/readings.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import type { Key } from '../../lambdas/runtime/store/table.ts';
import type { Outputs } from '../../localstack/cdk-process.ts';
import type { ProbeCall } from './probe.handler.ts';

/** A call, and what it does, for the receipt. */
interface Attempt {
  readonly what: string;
  readonly call: ProbeCall;
}

/** The calls of one role. Each is harmless where it is admitted. */
export interface Attempts {
  /** Calls that show that the role's own rights work. */
  readonly allowed: readonly Attempt[];
  readonly denied: readonly Attempt[];
}

/** The parts of a deployment that the attempts name. */
export interface Attempted {
  readonly table: string;
  readonly bus: string;
  readonly outputs: Outputs;
  /** The URL of a consumer's queue. */
  queue(consumer: Consumer): string;
  /** The body of a message that payments and inventory have processed, which their inboxes absorb. */
  readonly duplicate: string;
}

/** A role, the output with the name of the function that runs with it, and its attempts. */
interface Probe {
  readonly role: string;
  readonly output: string;
  readonly attempts: (system: Attempted) => Attempts;
}

/** A row that no event has. */
const PROBE = 'verify-probe';
const OWN_INBOX = inboxKey('payments', PROBE);
const OTHER_INBOX = inboxKey('inventory', PROBE);
const OUTBOX = { PK: 'OUTBOX#2000-01-01T00:00#0', SK: PROBE };

/** An event type that no rule matches. */
const UNKNOWN_TYPE = 'VerifyProbe';

/** A source that no service of the order system has. */
const UNKNOWN_SOURCE = 'verify-probe';

const marshalled = ({ PK, SK }: Key) => ({ PK: { S: PK }, SK: { S: SK } });

/** The calls on one table. Writes require a row that does not exist, so they change nothing. */
function tableCalls(TableName: string) {
  const exists = { ConditionExpression: 'attribute_exists(PK)' };
  return {
    get: (key: Key): ProbeCall => ({ command: 'GetItem', input: { TableName, Key: marshalled(key) } }),
    put: (key: Key): ProbeCall => ({
      command: 'PutItem',
      input: { TableName, Item: marshalled(key), ...exists },
    }),
    update: (key: Key): ProbeCall => ({
      command: 'UpdateItem',
      input: {
        TableName,
        Key: marshalled(key),
        UpdateExpression: 'SET probed = :true',
        ExpressionAttributeValues: { ':true': { BOOL: true } },
        ...exists,
      },
    }),
    remove: (key: Key): ProbeCall => ({
      command: 'DeleteItem',
      input: { TableName, Key: marshalled(key), ...exists },
    }),
    batchRemove: (key: Key): ProbeCall => ({
      command: 'BatchWriteItem',
      input: { RequestItems: { [TableName]: [{ DeleteRequest: { Key: marshalled(key) } }] } },
    }),
    insertByStatement: ({ PK, SK }: Key): ProbeCall => ({
      command: 'ExecuteStatement',
      input: {
        Statement: `INSERT INTO "${TableName}" VALUE {'PK': ?, 'SK': ?}`,
        Parameters: [{ S: PK }, { S: SK }],
      },
    }),
    removeByStatement: ({ PK, SK }: Key): ProbeCall => ({
      command: 'ExecuteStatement',
      input: {
        Statement: `DELETE FROM "${TableName}" WHERE PK = ? AND SK = ?`,
        Parameters: [{ S: PK }, { S: SK }],
      },
    }),
    query: (PK: string): ProbeCall => ({
      command: 'Query',
      input: {
        TableName,
        KeyConditionExpression: 'PK = :pk',
        ExpressionAttributeValues: { ':pk': { S: PK } },
      },
    }),
    scan: (): ProbeCall => ({ command: 'Scan', input: { TableName, Limit: 1 } }),
  };
}

/** Sends a message that its consumer has processed before. */
function sendTo(QueueUrl: string, { duplicate }: Attempted): ProbeCall {
  return { command: 'SendMessage', input: { QueueUrl, MessageBody: duplicate } };
}

function putEvent(EventBusName: string, Source: string): ProbeCall {
  const entry = { EventBusName, Source, DetailType: UNKNOWN_TYPE, Detail: '{}' };
  return { command: 'PutEvents', input: { Entries: [entry] } };
}

/** The role of payments' function. */
function consumerAttempts(system: Attempted): Attempts {
  const table = tableCalls(system.table);
  return {
    allowed: [{ what: 'read its inbox', call: table.get(OWN_INBOX) }],
    denied: [
      { what: 'delete a row of its inbox', call: table.remove(OWN_INBOX) },
      { what: 'replace a row of its inbox', call: table.put(OWN_INBOX) },
      { what: "update another consumer's inbox", call: table.update(OTHER_INBOX) },
      { what: 'read the outbox', call: table.query(OUTBOX.PK) },
      { what: 'scan the table', call: table.scan() },
      { what: 'put an event on the bus', call: putEvent(system.bus, 'payments') },
      { what: 'send to its queue', call: sendTo(system.queue('payments'), system) },
    ],
  };
}

/** The role of the orders API. */
function producerAttempts(system: Attempted): Attempts {
  const table = tableCalls(system.table);
  return {
    allowed: [{ what: 'read its rows', call: table.get({ PK: `ORDER#${PROBE}`, SK: 'ORDER' }) }],
    denied: [
      { what: 'put an inbox row', call: table.put(OWN_INBOX) },
      { what: 'read an inbox row', call: table.get(OWN_INBOX) },
      { what: "read another service's rows", call: table.get({ PK: `PAYMENT#${PROBE}`, SK: 'PAYMENT' }) },
      { what: 'read the outbox', call: table.query(OUTBOX.PK) },
      { what: 'delete an outbox row', call: table.remove(OUTBOX) },
      { what: 'put an event on the bus', call: putEvent(system.bus, 'orders') },
      { what: "send to a consumer's queue", call: sendTo(system.queue('inventory'), system) },
    ],
  };
}

/** The role of the stream relay, which the bus admits. */
function relayAttempts(system: Attempted): Attempts {
  const table = tableCalls(system.table);
  return {
    allowed: [{ what: 'put an event of a declared source', call: putEvent(system.bus, 'orders') }],
    denied: [
      { what: 'put an event of another source', call: putEvent(system.bus, UNKNOWN_SOURCE) },
      { what: 'add an outbox row', call: table.put(OUTBOX) },
      { what: 'delete an outbox row', call: table.remove(OUTBOX) },
      { what: 'read an inbox row', call: table.get(OWN_INBOX) },
      { what: "read a service's rows", call: table.get({ PK: `ORDER#${PROBE}`, SK: 'ORDER' }) },
    ],
  };
}

/** A role with every right: what it may do elsewhere, the policies of table, bus and queues deny. */
function intruderAttempts(system: Attempted): Attempts {
  const table = tableCalls(system.table);
  const writes = (key: Key, row: string): Attempt[] => [
    { what: `delete ${row}`, call: table.remove(key) },
    { what: `replace ${row}`, call: table.put(key) },
    { what: `insert ${row} by PartiQL`, call: table.insertByStatement(key) },
    { what: `delete ${row} by PartiQL`, call: table.removeByStatement(key) },
    { what: `delete ${row} in a batch`, call: table.batchRemove(key) },
  ];
  return {
    allowed: [
      ...writes({ PK: `VERIFY#${randomUUID()}`, SK: PROBE }, 'another row'),
      {
        what: 'put an event on another bus',
        call: putEvent(required(system.outputs, 'OpenBusName'), 'orders'),
      },
      { what: 'send to another queue', call: sendTo(required(system.outputs, 'OpenQueueUrl'), system) },
    ],
    denied: [
      ...writes(OWN_INBOX, 'an inbox row'),
      { what: 'put an event on the bus', call: putEvent(system.bus, 'orders') },
      ...(['payments', 'inventory'] as const).map((consumer) => ({
        what: `send to the queue of ${consumer}`,
        call: sendTo(system.queue(consumer), system),
      })),
    ],
  };
}

/** The probes of the deployment. */
export const PROBES: readonly Probe[] = [
  { role: "a consumer's role", output: 'ProbeConsumer', attempts: consumerAttempts },
  { role: "a producer's role", output: 'ProbeProducer', attempts: producerAttempts },
  { role: "the relay's role", output: 'ProbeRelay', attempts: relayAttempts },
  { role: 'a role with every right', output: 'ProbeIntruder', attempts: intruderAttempts },
];
