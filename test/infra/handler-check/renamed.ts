/** A handler under another name than Lambda calls. */
export const main = Object.assign(async () => ({}), { handles: [] });
