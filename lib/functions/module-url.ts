/** The URL of this file. In the CommonJS build it is still that of the ES module: both builds bundle the same handlers. */
export const moduleUrl: string = import.meta.url;
