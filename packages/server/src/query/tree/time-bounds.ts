import type { Expression } from './query.ts'

/**
 * Bounds within which PostgreSQL's calendar (4713 BC to 294276) has every result, so that no row can make a query
 * fail: beyond them a result is NULL. Times of records and statements are of the years 1000 to 9999.
 */
const yearsMax = 1_500
const [firstTime, lastTime] = ['0001-01-01', '20000-01-01']
const [intervalYearsMax, intervalDaysMax, intervalHoursMax] = [1_500, 400_000, 9_600_000]
const daysMax = 1_000_000
/** The most years of an interval within those bounds. */
const shortYears = 3_700

/** Prints a time, NULL where it could be so far away that nothing may be added to it. */
export function printTimeWithin(time: string, expression: Expression | undefined): string {
  const isNear = expression !== undefined && countYears(expression) <= yearsMax
  return isNear
    ? time
    : `CASE WHEN ${time} BETWEEN '${firstTime}' AND '${lastTime}' THEN ${time} END`
}

/** Prints a test whether an interval is short in each of its parts, which are held apart and never add up. */
export function printShortInterval(interval: string): string {
  return `abs(extract(year FROM ${interval})) <= ${intervalYearsMax} AND abs(extract(day FROM ${interval})) <= ${intervalDaysMax} AND abs(extract(hour FROM ${interval})) <= ${intervalHoursMax}`
}

/** Prints a time with an interval added or taken away. */
export function printMoved(
  sign: '+' | '-',
  [time = '', interval = '']: readonly string[],
  [of, by]: readonly (Expression | undefined)[],
): string {
  const near = printTimeWithin(time, of)
  const moved = `(${near} ${sign} ${interval})`
  return isShortConstant(by) ? moved : `CASE WHEN ${printShortInterval(interval)} THEN ${moved} END`
}

/** Prints intervals added up or taken away from each other. */
export function printIntervalSum(
  sign: '+' | '-',
  texts: readonly string[],
  expressions: readonly Expression[],
): string {
  const sum = `(${texts.join(` ${sign} `)})`
  const tests = texts.flatMap((text, at) =>
    isShortConstant(expressions[at]) ? [] : [printShortInterval(text)],
  )
  return tests.length === 0 ? sum : `CASE WHEN ${tests.join(' AND ')} THEN ${sum} END`
}

/** Prints an interval times a number, or divided by one, as long as every part of the result can be held. */
export function printIntervalTimes(interval: string, sign: '*' | '/', number: string): string {
  const of = (unit: string) => `extract(${unit} FROM ${interval})`
  const parts = [
    [`${of('year')} * 12 + ${of('month')}`, '1e9'],
    [of('day'), '1e9'],
    [`${of('hour')} * 3600 + ${of('minute')} * 60 + ${of('second')}`, '1e12'],
  ]
  const tests = parts.map(([part, most]) =>
    sign === '*'
      ? `abs((${part}) * ${number}) <= ${most}`
      : `abs(${part}) <= ${most} * abs(${number})`,
  )
  const bounds =
    sign === '*' ? [`abs(${number}) <= 1e15`] : [`abs(${number}) BETWEEN 1e-9 AND 1e15`]
  return `CASE WHEN ${[...bounds, ...tests].join(' AND ')} THEN ${interval} ${sign} ${number}::float8 END`
}

/** Returns true of an interval that is written out and not longer than the years. */
export function isIntervalWithin(interval: Expression, years: number): boolean {
  return interval.kind === 'constant' && countIntervalYears(interval) <= years + 13
}

/** Prints a date of a year, a month and a day, NULL where the calendar has none such. */
export function printDate(year: string, month: string, day: string): string {
  const first = `make_date(round(${year})::int4, round(${month})::int4, 1)`
  return `CASE WHEN round(${year}) BETWEEN 1 AND 9999 AND round(${month}) BETWEEN 1 AND 12 THEN
 CASE WHEN round(${day}) BETWEEN 1 AND extract(day FROM ${first} + '1 month -1 day'::interval) THEN ${first} + (round(${day})::int4 - 1) END END`
}

/** Prints a date with days added or taken away. */
export function printMovedDate(
  sign: '+' | '-',
  [date = '', days = '']: readonly string[],
  [of]: readonly (Expression | undefined)[],
): string {
  const count = `CASE WHEN abs(${days}) <= ${daysMax} THEN trunc(${days})::int4 END`
  return `(${printTimeWithin(date, of)} ${sign} ${count})`
}

/** Returns how many years a time may be before 1000 or after 9999. */
function countYears(expression: Expression): number {
  switch (expression.kind) {
    case 'field':
    case 'constant':
    case 'parameter':
    case 'convert':
      return 0
    case 'cast':
      return isTime(expression.argument) ? countYears(expression.argument) : 0
    case 'call':
      return countYearsOfCall(expression)
    default:
      return Number.POSITIVE_INFINITY
  }
}

function countYearsOfCall({
  name,
  arguments: args,
}: Extract<Expression, { kind: 'call' }>): number {
  const [first, second] = args
  switch (name) {
    case 'time + interval':
    case 'time - interval': {
      const before = first === undefined ? Number.POSITIVE_INFINITY : countYears(first)
      // A time that was too far away is NULL by now.
      return Math.min(before, yearsMax) + countIntervalYears(second)
    }
    case 'date + number':
    case 'date - number': {
      const before = first === undefined ? Number.POSITIVE_INFINITY : countYears(first)
      return Math.min(before, yearsMax) + countDayYears(second)
    }
    case 'date_trunc':
    case 'timezone':
      // A time is cut to at most the beginning of its millennium.
      return 1_000 + (second === undefined ? 0 : countYears(second))
    case 'to_timestamp':
      return 0
    case 'to_timestamp of text':
    case 'to_date':
    case 'make_date':
      return 1_000
    case 'coalesce':
    case 'greatest':
    case 'least':
    case 'nullif':
      return Math.max(...args.map(countYears))
    default:
      return Number.POSITIVE_INFINITY
  }
}

/** Returns the most years of a number of days; more than a million are never added. */
function countDayYears(expression: Expression | undefined): number {
  const days = expression?.kind === 'constant' ? Math.abs(Number(expression.value)) : daysMax
  return 1 + Math.min(days, daysMax) / 365
}

/** Returns whether it is a moment or a day. */
export function isTime({ type }: Expression): boolean {
  return type === 'timestamp' || type === 'date'
}

function isShortConstant(expression: Expression | undefined): boolean {
  return countIntervalYears(expression) < shortYears
}

const yearsOfUnit: Readonly<Record<string, number>> = {
  millennium: 1_000,
  century: 100,
  decade: 10,
  year: 1,
  mon: 1 / 12,
  week: 7 / 365,
  day: 1 / 365,
}

/** Returns the most years of an interval that is written out; any other may have `shortYears`. */
function countIntervalYears(expression: Expression | undefined): number {
  if (expression?.kind !== 'constant') return shortYears
  const terms = [...String(expression.value ?? '').matchAll(/(\d+(?:\.\d+)?) ?([a-z]+)/g)]
  return terms.reduce(
    (sum, [, count, unit = '']) => {
      const key = Object.keys(yearsOfUnit).find((each) => unit.startsWith(each)) ?? ''
      return sum + Number(count) * (yearsOfUnit[key] ?? 1 / 8_000)
    },
    0.1 * terms.length + 12,
  )
}
