/**
 * An extension that does nothing, to compare with.
 */
export default function nothing() {}
