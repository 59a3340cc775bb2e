/** One declaration of an entry, as API Extractor's model has it. */
export interface ApiDeclaration {
  readonly kind: string;
  /** Constructors have none. */
  readonly name?: string;
  readonly docComment?: string;
  readonly isStatic?: boolean;
  readonly isOptional?: boolean;
  readonly overloadIndex?: number;
  readonly excerptTokens: readonly { readonly text: string }[];
  readonly propertyTypeTokenRange?: { readonly startIndex: number; readonly endIndex: number };
  readonly members?: readonly ApiDeclaration[];
}

/**
 * The exports of an entry, in alphabetical order.
 *
 * @param model - the JSON that API Extractor wrote
 * @throws Error If the model has no entry.
 */
export function declarationsOf(model: string): readonly ApiDeclaration[] {
  const [entry] = (JSON.parse(model) as ApiDeclaration).members ?? [];
  if (entry?.members === undefined) throw new Error('The model of the API has no entry point.');
  return entry.members.toSorted((a, b) => (a.name ?? '').localeCompare(b.name ?? '', 'en'));
}

/**
 * The declaration as TypeScript shows it, without its members.
 *
 * @example
 * signatureOf(declaration); // 'function errorCode(error: unknown): string | undefined;'
 */
export function signatureOf({ excerptTokens }: ApiDeclaration): string {
  const text = excerptTokens.map(({ text }) => text).join('');
  return text.replace(/^\s*export declare |^\s*export /, '').trim();
}

/** The type of a property. */
export function typeOf({ excerptTokens, propertyTypeTokenRange: range }: ApiDeclaration): string {
  const tokens = range === undefined ? [] : excerptTokens.slice(range.startIndex, range.endIndex);
  return tokens
    .map(({ text }) => text)
    .join('')
    .replaceAll(/\s+/g, ' ')
    .trim();
}
