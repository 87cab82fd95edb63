/** The reason why a view cannot be maintained incrementally, in words for the seller: "a window function". */
export class NotIncremental extends Error {}
