let freeze: <T extends object>(value: T) => Readonly<T> = (value) => value

/**
 * Marks what is checked once and then shared. Types forbid to change it; freezing it too would take a fifth of the time
 * of a small read, so only tests do that, which shows that nothing changes it.
 */
export function frozen<const T extends object>(value: T): Readonly<T> {
  return freeze(value)
}

/** From now on what is marked is frozen: for tests. */
export function freezeInEarnest(): void {
  freeze = Object.freeze
}
