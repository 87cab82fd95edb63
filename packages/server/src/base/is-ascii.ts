/** Returns true if a text has no character beyond ASCII. */
export function isAscii(text: string): boolean {
  return /^\p{ASCII}*$/u.test(text)
}
