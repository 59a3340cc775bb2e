/**
 * Returns the text of the last top-level member `detail` of a JSON object, byte for byte: parsing and writing it again would change
 * numbers that JavaScript cannot represent.
 *
 * @param json - valid JSON: the consumer has parsed it
 */
export function envelopeText(json: string): string {
  let depth = 0;
  let name: string | undefined;
  let from = -1;
  let detail = '';
  for (let at = 0; at < json.length; at += 1) {
    const sign = json[at];
    if (sign === '"') {
      const end = endOfString(json, at);
      if (depth === 1 && from < 0) name = JSON.parse(json.slice(at, end + 1));
      at = end;
    } else if (sign === '{' || sign === '[') depth += 1;
    else if (sign === ':' && depth === 1 && from < 0) from = at + 1;
    else if (sign === '}' || sign === ']' || (sign === ',' && depth === 1)) {
      if (depth === 1 && name === 'detail') detail = json.slice(from, at).trim();
      if (depth === 1) from = -1;
      if (sign !== ',') depth -= 1;
    }
  }
  return detail;
}

/** The position of the quote that ends a string. */
function endOfString(json: string, start: number): number {
  for (let at = start + 1; at < json.length; at += 1) {
    if (json[at] === '\\') at += 1;
    else if (json[at] === '"') return at;
  }
  return json.length;
}
