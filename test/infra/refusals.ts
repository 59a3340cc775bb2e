/** Runs cases that refuse settings, and lists each with its error. An accepted case has none. */
export function refusalsOf<Props>(
  cases: Readonly<Record<string, Props>>,
  make: (props: Props) => unknown,
): string {
  const texts = Object.entries(cases).map(([what, props]) => {
    try {
      make(props);
      return `# ${what}\nNOT REFUSED\n`;
    } catch (error) {
      return `# ${what}\n${String(error).replaceAll(process.cwd(), '<folder>')}\n`;
    }
  });
  return texts.join('\n');
}
