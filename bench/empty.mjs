/** An empty extension, for comparison. */
export default function nothing() {}
