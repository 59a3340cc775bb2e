/** The smallest possible function. */
export const handler = async () => {};
