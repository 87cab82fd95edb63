/** What stands against maintaining a view by changes, in words that a seller reads: "a window function". */
export class Obstacle extends Error {}
