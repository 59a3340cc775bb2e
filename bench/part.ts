/** A table of figures, for the terminal and for the docs. */
export interface FigureTable {
  /** The marker of its position in the docs: `<!-- bench:NAME -->`. */
  readonly name: string;
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
}

/** The result of a part of the benchmark. */
export interface PartResult {
  /** Its members of the JSON document. */
  readonly json: Readonly<Record<string, unknown>>;
  readonly tables: readonly FigureTable[];
}

/** Options of a part. */
export interface PartSettings {
  /** Reports progress. */
  readonly say: (line: string) => void;
  /** Uses small sizes, as a smoke test; the figures mean little. */
  readonly quick: boolean;
  /** Lets a part install what it measures beside Mailroom, in a temporary folder. */
  readonly install: boolean;
  /** A folder with `.tgz` files to install instead of packages of the registry. */
  readonly packages?: string | undefined;
}

/** A part of the benchmark: `npm run bench -- NAME`. */
export interface Part {
  readonly name: string;
  /** One line: what it measures. */
  readonly title: string;
  run(settings: PartSettings): Promise<PartResult>;
}
