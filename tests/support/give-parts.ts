/** Some members of a thing, each of its own type; functions are given whole, and a name may be any other one. */
export type PartsOf<T> = T extends (...given: never[]) => unknown
  ? T
  : T extends string
    ? string
    : T extends object
      ? { readonly [Name in keyof T]?: PartsOf<T[Name]> | undefined }
      : T

/**
 * Gives the code under test the parts of a thing that it uses there, in place of the whole. This is the one place where
 * a test says less than a type asks for: what it gives is checked, what it leaves out is undefined.
 */
export function giveParts<T>(parts: PartsOf<T>): T {
  return parts as T
}
