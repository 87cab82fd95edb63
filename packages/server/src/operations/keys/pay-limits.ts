/** Pay limits as they are kept: amounts as decimal strings, whichever way they were sent. */
export function toStoredPayLimits(sent: object | null): Record<string, unknown> | null {
  if (sent === null) return null
  return Object.fromEntries(
    Object.entries(sent).map(([name, value]) => [
      name,
      typeof value === 'number' ? String(value) : value,
    ]),
  )
}
