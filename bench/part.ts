/** A table of figures, for the terminal and for the docs alike. */
export interface FigureTable {
  /** Names its place in the docs: `<!-- bench:NAME -->`. */
  readonly name: string;
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
}

/** What a part of the benchmark found. */
export interface PartResult {
  /** Its members of the JSON document. */
  readonly json: Readonly<Record<string, unknown>>;
  readonly tables: readonly FigureTable[];
}

/** What a part is run with. */
export interface PartSettings {
  /** Says how far it is, to whoever watches. */
  readonly say: (line: string) => void;
  /** Small sizes, to see that it runs; its figures say little. */
  readonly quick: boolean;
}

/** A part of the benchmark: `npm run bench -- NAME`. */
export interface Part {
  readonly name: string;
  /** What it measures, in one line. */
  readonly title: string;
  run(settings: PartSettings): Promise<PartResult>;
}
