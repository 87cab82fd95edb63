/** Texts that count as times: ISO 8601, year 1000 to 9999, to the day or to fractions of a second. */
const timePattern =
  '^[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?(Z|[+-](0[0-9]|1[0-4])(:?[0-5][0-9])?)?)?$'

/**
 * Prints the UTC time that a text states, NULL if it states none; without a zone it is UTC. Never an error: the day
 * is counted from the first of its month, and a day that the month lacks gives NULL.
 */
export function printTextToTime(text: string): string {
  const first = `(substr(${text}, 1, 7) || '-01')::timestamp`
  const days = `(substr(${text}, 9, 2)::int4 - 1) * '1 day'::interval`
  const clock = `coalesce(substring(${text} FROM '[T ]([0-9:.]+)'), '00:00')::interval`
  // PostgreSQL writes a zone without the minutes if there are none.
  const hours = `substring(${text} FROM ':[0-9.]+([+-][0-9]{2})')`
  const minutes = `coalesce(substring(${text} FROM ':[0-9.]+[+-][0-9]{2}:?([0-9]{2})$'), '00')`
  const zone = `coalesce(${hours} || ':' || ${minutes}, '00:00')::interval`
  return `CASE WHEN ${text} ~ '${timePattern}' THEN
 CASE WHEN extract(month FROM ${first} + ${days}) = extract(month FROM ${first}) THEN ${first} + ${days} + ${clock} - ${zone} END END`
}

/** Prints a time as ISO 8601 in UTC, with microseconds only if there are any. */
export function printTimeToText(time: string): string {
  return `regexp_replace(to_char(${time}, 'YYYY-MM-DD"T"HH24:MI:SS.US'), '[.]?0+$', '') || 'Z'`
}

/** Prints a time as PostgreSQL casts it to a text; a moment has its zone, which is UTC. */
export function printTimeAsPostgres(time: string, zone: 'moment' | 'local' | undefined): string {
  const clock = `regexp_replace(to_char(${time}, 'YYYY-MM-DD HH24:MI:SS.US'), '[.]?0+$', '')`
  return zone === 'moment' ? `(${clock} || '+00')` : clock
}

export function printDateToText(date: string): string {
  return `to_char(${date}, 'YYYY-MM-DD')`
}
