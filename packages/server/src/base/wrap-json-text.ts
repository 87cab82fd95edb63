/**
 * Wraps the text of a JSON value: `JSON.stringify` prints it as it prints the value, which is parsed then and not kept.
 * A text of 128 KiB can stand for some megabytes.
 */
export function wrapJsonText(text: string): { readonly toJSON: () => unknown } {
  return { toJSON: () => JSON.parse(text) }
}
