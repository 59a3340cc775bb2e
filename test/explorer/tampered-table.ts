import type {
  EachUpdate,
  Item,
  Query,
  Table,
  TransactAction,
  Update,
} from '../../lambdas/runtime/store/table.ts';

/** What is changed between the code and its table: a rule is taken away from a request, or from an answer. */
export interface TableTamper {
  readonly update?: (update: Update) => Update;
  readonly action?: (action: TransactAction) => TransactAction;
  readonly each?: (update: EachUpdate) => EachUpdate;
  readonly got?: (item: Item | undefined) => Item | undefined;
  readonly found?: (item: Item, query: Query) => boolean;
}

/** The table with one rule taken away from what goes through it. */
export function tamperedTable(table: Table, tamper: TableTamper): Table {
  const { update = same, action = same, each = same, got = same, found = () => true } = tamper;
  const changed = (made: TransactAction): TransactAction =>
    action(made.Update === undefined ? made : { ...made, Update: update(made.Update) });
  return {
    ...table,
    get: async (key, options) => got(await table.get(key, options)),
    getEach: async (keys, options) => (await table.getEach(keys, options)).map(got),
    query: async (query) => {
      const page = await table.query(query);
      return { ...page, items: page.items.filter((item) => found(item, query)) };
    },
    write: (made) => table.write(changed(made)),
    transact: (actions, token) => table.transact(actions.map(changed), token),
    updateEach: (updates) => table.updateEach(updates.map(each)),
  };
}

/** As {@link tamperedTable}, for an inbox. */
export function tableTamper(tamper: TableTamper): { readonly tamperTable: (table: Table) => Table } {
  return { tamperTable: (real) => tamperedTable(real, tamper) };
}

/** The table where each strongly consistent read becomes an eventually consistent one. */
export function withoutStrongReads(table: Table): Table {
  return {
    ...table,
    get: (key) => table.get(key),
    getEach: (keys) => table.getEach(keys),
    query: (query) => table.query({ ...query, consistent: false }),
  };
}

/** An update whose condition is another one; what only the old one named is left out. */
export function withCondition(update: Update, condition: string | undefined): Update {
  const text = `${update.UpdateExpression ?? ''} ${condition ?? ''}`;
  const used = <T>(record: Record<string, T> | undefined) =>
    Object.fromEntries(
      Object.entries(record ?? {}).filter(([name]) => new RegExp(`${name}(?![A-Za-z0-9_])`).test(text)),
    );
  return {
    ...update,
    ConditionExpression: condition,
    ExpressionAttributeNames: used(update.ExpressionAttributeNames),
    ExpressionAttributeValues: used(update.ExpressionAttributeValues),
  };
}

/** An update whose expression has a part replaced. */
export function replaced(update: Update, from: string | RegExp, to: string): Update {
  return { ...update, UpdateExpression: (update.UpdateExpression ?? '').replace(from, to) };
}

/** An update whose condition has a part replaced, if it has it. */
export function replacedCondition(update: Update, part: string, by: string): Update {
  const { ConditionExpression: condition = '' } = update;
  return condition.includes(part) ? withCondition(update, condition.replace(part, by)) : update;
}

/** An update whose condition lacks a part. */
export function conditionWithout(part: string): (update: Update) => Update {
  return (update) => replacedCondition(update, part, '');
}

/** Whether an update sets this status. */
export function setsStatus(update: Update, status: string): boolean {
  const [, value = ''] = /#status = (:\w+)/.exec(update.UpdateExpression ?? '') ?? [];
  return update.ExpressionAttributeValues?.[value] === status;
}

function same<T>(value: T): T {
  return value;
}
