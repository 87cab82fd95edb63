/** Milliseconds of an hour and of a day; a day of UTC has no other length. */
export const hourMs = 3_600_000
export const dayMs = 24 * hourMs
