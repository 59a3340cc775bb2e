/** A row that is not there. */
class RowMissing extends Error {
  override readonly name = 'RowMissing';
}

/** A store with a method that fails in a function, in a callback and after an await. */
class Store {
  readonly rows = new Map<string, string>();

  async read(id: string): Promise<string[]> {
    await null;
    return [id].map((each) => rowOf(this.rows, each));
  }
}

function rowOf(rows: ReadonlyMap<string, string>, id: string): string {
  const row = rows.get(id);
  if (row === undefined) throw new RowMissing(`There is no row ${id}`, { cause: new TypeError('inner') });
  return row;
}

/** Fails; also the stack of its error is read. */
export const handler = async (id: string): Promise<string> => {
  const store = new Store();
  return store.read(id).then(
    () => 'read',
    (error: Error) => `${error.stack}\n${(error.cause as Error).stack}`,
  );
};
