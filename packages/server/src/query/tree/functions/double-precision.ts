/** Numbers up to this one are computed with in double precision; others count as NULL. */
export const doubleMax = '1e300'

/** Prints a number in double precision, NULL where it would be too large; so no row can make a query fail. */
export function printDouble(number: string, most: string): string {
  return `CASE WHEN abs(${number}) <= ${most} THEN round(${number}, 300)::float8 END`
}

/** Prints a number of double precision with all its digits, NULL where it is none. */
export function printFromDouble(double: string): string {
  return `nullif(nullif(nullif((${double})::text, 'NaN'), 'Infinity'), '-Infinity')::numeric`
}
